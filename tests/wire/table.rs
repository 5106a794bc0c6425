//! The fault table: every fault of the mock server in every dialect and both deliveries, what becomes of the call, how long
//! it waits, and what is said.

use std::time::Duration;

use planish::event::Live;
use planish::model::mock::{Answer, MockServer, Script};
use planish::model::{Api, ChatModel, Dialect, Dialects, ModelError, Paths, RetryPolicy};
use serde_json::{Value, json};

use crate::support::{Settings, chat, listen, model, serve, settings};

/// What a fault comes to.
#[derive(Clone, Copy, Debug)]
enum Becomes {
    /// A reply all the same.
    Reply,
    /// Another attempt; `None`: after the client's own wait, else after so many milliseconds.
    Retry(Option<u64>),
    /// The end of the call, with this status.
    Refused(u16),
    /// The same, whatever status the vendor gives it.
    Hopeless,
    /// The end of the run: the account may not spend more.
    NoCredit,
    Authentication,
}

struct Row {
    fault: Value,
    becomes: Becomes,
    /// In the message of the retry or the error.
    says: &'static str,
    /// Only where replies come as a stream.
    streamed: bool,
}

fn row(fault: Value, becomes: Becomes, says: &'static str) -> Row {
    Row { fault, becomes, says, streamed: false }
}

fn status(status: u16) -> Value {
    json!({"fault": "status", "status": status, "message": "so it is"})
}

fn with(status: u16, header: &str, value: &str) -> Value {
    json!({"fault": "status", "status": status, "headers": {header: value}})
}

fn coded(status: u16, code: &str) -> Value {
    json!({"fault": "status", "status": status, "code": code, "message": "so it is"})
}

fn limited(wait_ms: u64, form: &str) -> Value {
    json!({"fault": "rate_limit", "wait_ms": wait_ms, "form": form})
}

fn rows(api: Api) -> Vec<Row> {
    let mut rows = Vec::new();
    for code in [408, 409, 425, 429, 500, 502, 503, 504, 529] {
        rows.push(row(status(code), Becomes::Retry(None), "so it is"));
    }
    rows.push(row(status(402), Becomes::NoCredit, "so it is"));
    for code in [400, 404, 413, 422] {
        rows.push(row(status(code), Becomes::Refused(code), "so it is"));
    }
    for code in [401, 403] {
        rows.push(row(status(code), Becomes::Authentication, "so it is"));
    }
    rows.extend([
        row(limited(1500, "milliseconds"), Becomes::Retry(Some(1500)), "429"),
        row(limited(1500, "fraction"), Becomes::Retry(Some(1500)), "429"),
        row(limited(2000, "seconds"), Becomes::Retry(Some(2000)), "429"),
        row(limited(3_600_000, "seconds"), Becomes::Retry(Some(60_000)), "429"),
        row(limited(1000, "none"), Becomes::Retry(None), "429"),
        row(with(503, "retry-after", "3"), Becomes::Retry(Some(3000)), "503"),
        row(with(500, "x-should-retry", "false"), Becomes::Refused(500), "scripted fault"),
        row(with(400, "x-should-retry", "true"), Becomes::Retry(None), "400"),
        row(coded(429, "insufficient_quota"), Becomes::NoCredit, "so it is"),
        row(coded(429, "credit_balance_exhausted"), Becomes::NoCredit, "so it is"),
        row(coded(429, "enforced_spend_limit_reached"), Becomes::NoCredit, "so it is"),
        row(coded(400, "context_length_exceeded"), Becomes::Refused(400), "so it is"),
        row(coded(400, "content_filter"), Becomes::Refused(400), "so it is"),
        row(json!({"fault": "spend_limit"}), Becomes::NoCredit, ""),
        row(json!({"fault": "content_filter"}), Becomes::Hopeless, ""),
        row(json!({"fault": "context_length"}), Becomes::Hopeless, ""),
        row(json!({"fault": "stall"}), Becomes::Retry(None), "silence of 0.2 s inside the reply"),
        row(json!({"fault": "hang"}), Becomes::Retry(None), "no complete reply within 1.5 s"),
        row(json!({"fault": "drop"}), Becomes::Retry(None), ""),
        row(json!({"fault": "empty"}), Becomes::Retry(None), "empty reply"),
        row(json!({"fault": "malformed"}), Becomes::Retry(None), "malformed"),
        row(json!({"fault": "error_in_body", "code": 502}), Becomes::Retry(None), "status 50"),
        row(json!({"fault": "error_in_body", "code": 400}), Becomes::Refused(400), ""),
        row(json!({"fault": "error_in_body", "code": "server_error"}), Becomes::Retry(None), ""),
        row(json!({"fault": "error_in_stream", "code": 502}), Becomes::Retry(None), "status 50"),
        row(json!({"fault": "cut"}), Becomes::Retry(None), ""),
        row(json!({"fault": "html", "status": 502}), Becomes::Retry(None), "502"),
        row(json!({"fault": "invalid_utf8"}), Becomes::Reply, ""),
    ]);
    let no_done = match api {
        // Why the reply ended was told before.
        Api::Chat | Api::Messages => Becomes::Reply,
        Api::Responses => Becomes::Retry(None),
    };
    rows.push(Row { streamed: true, ..row(json!({"fault": "no_done"}), no_done, "") });
    rows
}

/// A client of a server that answers `fault` once, then well.
async fn client(dialect: &Dialect, stream: bool, fault: &Value) -> (MockServer, Settings) {
    let answers: Vec<Answer> = serde_json::from_value(json!([fault, "survived"])).unwrap();
    let server = serve(Script { chunk: 1 << 20, ..Script::sequence(answers) }).await;
    let mut settings = settings(&server);
    let origin = server.base_url().trim_end_matches("/v1").to_owned();
    settings.http.dialect = dialect.clone();
    settings.http.base_url = format!("{origin}{}", path(dialect));
    settings.http.stream = stream;
    settings.retry = RetryPolicy::default();
    settings.limits.read_timeout = Duration::from_millis(200);
    settings.limits.total_timeout = Duration::from_millis(1500);
    (server, settings)
}

/// How a call ends, or the first wait before another attempt: nobody waits for that here.
enum Ends {
    Reply,
    Error(ModelError),
    Waits(u64, String),
}

async fn ends(settings: Settings) -> Ends {
    let (sink, heard) = listen();
    let waits = || {
        heard.lock().unwrap().iter().find_map(|news| match news {
            Live::CallRetrying { error, wait_ms, .. } => Some(Ends::Waits(*wait_ms, error.clone())),
            _ => None,
        })
    };
    let told = std::sync::Arc::new(tokio::sync::Notify::new());
    let sink: planish::model::LiveSink = {
        let told = told.clone();
        std::sync::Arc::new(move |news| {
            sink(news);
            told.notify_one();
        })
    };
    let model = model(settings);
    let request = chat("x");
    let call = model.chat(&request, &sink);
    tokio::pin!(call);
    loop {
        tokio::select! {
            // On a busy machine the wait may be over when this looks.
            biased;
            () = told.notified() => {
                if let Some(waits) = waits() {
                    return waits;
                }
            }
            result = &mut call => return match result {
                Ok(_) => waits().unwrap_or(Ends::Reply),
                Err(error) => Ends::Error(error),
            },
        }
    }
}

fn check(row: &Row, ends: &Ends, what: &str) {
    let says = |text: &str| assert!(text.contains(row.says), "{what}: {text}");
    match (row.becomes, ends) {
        (Becomes::Reply, Ends::Reply) => {}
        (Becomes::Retry(Some(want)), Ends::Waits(wait_ms, error)) => {
            assert_eq!(*wait_ms, want, "{what}");
            says(error);
        }
        (Becomes::Retry(None), Ends::Waits(wait_ms, error)) => {
            assert!((375..=500).contains(wait_ms), "{what}: {wait_ms} ms");
            says(error);
        }
        (Becomes::Refused(want), Ends::Error(error @ ModelError::Refused { status, .. })) => {
            assert_eq!(*status, want, "{what}");
            assert!(!error.ends_run(), "{what}");
            says(&error.to_string());
        }
        (Becomes::Hopeless, Ends::Error(error @ ModelError::Refused { .. })) => {
            assert!(!error.ends_run(), "{what}");
        }
        (Becomes::NoCredit, Ends::Error(error @ ModelError::Unusable { .. })) => {
            assert!(error.ends_run(), "{what}");
            says(&error.to_string());
        }
        (Becomes::Authentication, Ends::Error(error @ ModelError::Authentication { .. })) => {
            assert!(error.ends_run(), "{what}");
            assert!(error.to_string().contains("environment variable TEST_KEY"), "{what}: {error}");
            says(&error.to_string());
        }
        (_, Ends::Reply) => panic!("{what}: a reply"),
        (_, Ends::Error(error)) => panic!("{what}: {error}"),
        (_, Ends::Waits(wait_ms, error)) => panic!("{what}: waits {wait_ms} ms ({error})"),
    }
}

/// Where a dialect is served by the mock server.
fn path(dialect: &Dialect) -> &'static str {
    match (dialect.paths, dialect.name.as_str()) {
        (Paths::AzureDated | Paths::AzureV1, _) | (_, "deepseek") => "",
        (_, "openrouter") => "/api/v1",
        (_, "gemini") => "/v1beta/openai",
        (_, _) => "/v1",
    }
}

async fn cell(dialect: Dialect, stream: bool, row: Row) {
    let what = format!("{}, stream {stream}, {}", dialect.name, row.fault);
    let (_server, settings) = client(&dialect, stream, &row.fault).await;
    check(&row, &ends(settings).await, &what);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_has_its_class_its_wait_and_its_words_in_every_dialect() {
    let table = Dialects::built_in().unwrap();
    let mut wrong = Vec::new();
    for dialect in table.rows() {
        let mut cells = Vec::new();
        for stream in [true, false] {
            let rows = rows(dialect.api).into_iter().filter(|row| stream || !row.streamed);
            // OpenRouter's codes are numbers; a spent credit is a status of its own there.
            let rows = rows.filter(|row| {
                dialect.name != "openrouter" || row.fault["status"] != 429 || row.fault["code"].is_null()
            });
            cells.extend(rows.map(|row| tokio::spawn(cell(dialect.clone(), stream, row))));
        }
        for result in futures_util::future::join_all(cells).await {
            if let Err(error) = result {
                let panic = error.into_panic();
                wrong.push(panic.downcast_ref::<String>().cloned().unwrap_or_default());
            }
        }
    }
    assert!(wrong.is_empty(), "{} cells:\n{}", wrong.len(), wrong.join("\n"));
}

/// The date that a server names is not the moment at which it is read.
#[tokio::test]
async fn a_date_is_a_wait_until_then() {
    let dialect = Dialect::plain("plain");
    let (_server, settings) = client(&dialect, true, &limited(30_000, "date")).await;
    match ends(settings).await {
        Ends::Waits(wait_ms, _) => assert!((25_000..=31_000).contains(&wait_ms), "{wait_ms}"),
        Ends::Reply | Ends::Error(_) => panic!("no wait"),
    }
}
