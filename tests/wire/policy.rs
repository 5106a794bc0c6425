//! How patient a model is, by a virtual clock: an endpoint that does what it is told, and how long a call takes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use planish::config::BudgetConfig;
use planish::domain::{ChatReply, ChatRequest, FinishReason, Message, Prompt, Role, Speaker, Usage};
use planish::model::{
    Allowance, Breakers, Budget, ChatModel, Dials, Endpoint, Fault, FaultKind, Limiter, Limits, LiveSink,
    ModelError, Patient, Quota, RateHint, Redactor, RetryPolicy,
};
use tokio::time::Instant;

use crate::support::{chat, deaf};

/// What an attempt comes to.
#[derive(Clone)]
enum Act {
    Reply,
    Fault(FaultKind),
    /// It takes this long.
    After(u64, Box<Act>),
    Hang,
}

fn temporary(wait_s: Option<u64>) -> Act {
    Act::Fault(FaultKind::Temporary { wait: wait_s.map(Duration::from_secs) })
}

fn overloaded(wait_s: Option<u64>) -> Act {
    Act::Fault(FaultKind::Overloaded { wait: wait_s.map(Duration::from_secs) })
}

fn after(seconds: u64, act: Act) -> Act {
    Act::After(seconds, Box::new(act))
}

/// Acts in order, the last one for ever, and when each attempt began.
struct Fake {
    acts: Mutex<VecDeque<Act>>,
    began: Mutex<Vec<(Instant, String)>>,
    hint: Mutex<Option<RateHint>>,
}

impl Fake {
    fn new(acts: impl IntoIterator<Item = Act>) -> Arc<Self> {
        let acts = Mutex::new(acts.into_iter().collect());
        Arc::new(Self { acts, began: Mutex::default(), hint: Mutex::default() })
    }

    fn attempts(&self) -> usize {
        self.began.lock().unwrap().len()
    }

    /// Seconds after `start` at which attempts began.
    fn times(&self, start: Instant) -> Vec<u64> {
        self.began.lock().unwrap().iter().map(|(at, _)| at.duration_since(start).as_secs()).collect()
    }
}

impl Endpoint for Fake {
    fn label(&self) -> &str {
        "fake"
    }

    fn host(&self) -> &str {
        "fake.example"
    }

    fn login(&self) -> String {
        "nothing".into()
    }

    fn rates(&self) -> Option<RateHint> {
        self.hint.lock().unwrap().take()
    }

    fn attempt<'a>(
        &'a self,
        request: &'a ChatRequest,
        _live: &'a LiveSink,
    ) -> BoxFuture<'a, Result<ChatReply, Fault>> {
        self.began.lock().unwrap().push((Instant::now(), request.path.clone()));
        let mut acts = self.acts.lock().unwrap();
        let mut act = if acts.len() > 1 { acts.pop_front().unwrap() } else { acts[0].clone() };
        Box::pin(async move {
            loop {
                act = match act {
                    Act::Reply => {
                        let usage =
                            Usage { calls: 1, prompt_tokens: 5, completion_tokens: 2, ..Usage::default() };
                        return Ok(ChatReply::of_text("fine", FinishReason::Stop, usage, 1));
                    }
                    Act::Fault(kind) => return Err(Fault::new(kind, "a fault")),
                    Act::Hang => std::future::pending().await,
                    Act::After(seconds, next) => {
                        tokio::time::sleep(Duration::from_secs(seconds)).await;
                        *next
                    }
                }
            }
        })
    }
}

fn limits() -> Limits {
    Limits {
        max_retries: 5,
        read_timeout: Duration::from_secs(60),
        total_timeout: Duration::from_secs(300),
        call_timeout: Duration::from_secs(900),
        breaker_failures: 5,
    }
}

fn budget(limits: BudgetConfig) -> Arc<Budget> {
    Arc::new(Budget::new(limits, Usage::default(), 0.0))
}

fn patient(fake: &Arc<Fake>, limits: Limits, budget: &Arc<Budget>) -> Patient {
    let (policy, dials) = (RetryPolicy::default(), Arc::new(Dials::new(limits)));
    Patient::new(fake.clone(), policy, dials, budget.clone(), Arc::new(Redactor::new([])))
}

/// Result, seconds and attempts of one call.
async fn outcome(acts: Vec<Act>, limits: Limits) -> (Result<ChatReply, ModelError>, f64, usize) {
    let fake = Fake::new(acts);
    let start = Instant::now();
    let model = patient(&fake, limits, &budget(BudgetConfig::default()));
    let result = model.chat(&chat("x"), &deaf()).await;
    (result, start.elapsed().as_secs_f64(), fake.attempts())
}

#[tokio::test(start_paused = true)]
async fn every_class_of_fault_waits_as_long_as_it_should() {
    let refused = Act::Fault(FaultKind::Refused { status: 400 });
    type Row = (&'static str, Vec<Act>, std::ops::RangeInclusive<f64>, usize, bool);
    let table: Vec<Row> = vec![
        ("a reply at once", vec![Act::Reply], 0.0..=0.0, 1, true),
        // 0.5 s, then 1 s, each less up to a quarter.
        ("no word", vec![temporary(None), temporary(None), Act::Reply], 1.125..=1.5, 3, true),
        ("the server's word", vec![temporary(Some(7)), Act::Reply], 7.0..=7.0, 2, true),
        ("overloaded", vec![overloaded(Some(3)), Act::Reply], 3.0..=3.0, 2, true),
        ("an hour is cut", vec![overloaded(Some(3600)), Act::Reply], 60.0..=60.0, 2, true),
        ("a lesson", vec![Act::Fault(FaultKind::Learned), Act::Reply], 0.0..=0.0, 2, true),
        ("refused", vec![refused, Act::Reply], 0.0..=0.0, 1, false),
        ("no login", vec![Act::Fault(FaultKind::Authentication), Act::Reply], 0.0..=0.0, 1, false),
        // 0.5 + 1 + 2 + 4 + 8 s
        ("down for good", vec![temporary(None)], 11.6..=15.5, 6, false),
        (
            "a lesson is no retry",
            {
                let mut acts = vec![temporary(None); 5];
                acts.insert(2, Act::Fault(FaultKind::Learned));
                acts.push(Act::Reply);
                acts
            },
            11.6..=15.5,
            7,
            true,
        ),
        ("silence ends at total_timeout_s", vec![Act::Hang, Act::Reply], 300.3..=300.5, 2, true),
        ("and all of it at call_timeout_s", vec![Act::Hang], 900.0..=900.1, 3, false),
    ];
    for (what, acts, seconds, attempts, answered) in table {
        let (result, took, made) = outcome(acts, limits()).await;
        assert_eq!(result.is_ok(), answered, "{what}: {result:?}");
        // The timer ticks in milliseconds.
        assert!((*seconds.start()..=seconds.end() + 0.02).contains(&took), "{what}: {took} s");
        assert_eq!(made, attempts, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_call_ends_its_retries_with_a_word_why() {
    let short = Limits { call_timeout: Duration::from_secs(10), ..limits() };
    let (result, took, attempts) = outcome(vec![after(2, temporary(Some(4)))], short).await;
    let told = result.unwrap_err().to_string();
    assert!(told.contains("no time for another attempt (model.call_timeout_s = 10)"), "{told}");
    assert_eq!((took as u64, attempts), (8, 2), "2 s, 4 s of waiting, 2 s, and no further wait");
}

#[tokio::test(start_paused = true)]
async fn a_lesson_that_took_all_the_time_is_followed_by_no_attempt() {
    let short = Limits { call_timeout: Duration::from_secs(10), ..limits() };
    let fake =
        Fake::new([after(4, temporary(Some(3))), after(2, Act::Fault(FaultKind::Learned)), Act::Reply]);
    let budget = budget(BudgetConfig::default());
    let model = patient(&fake, short, &budget);
    assert_eq!(model.chat(&chat("x"), &deaf()).await.unwrap().text, "fine");

    let fake = Fake::new([
        after(4, temporary(Some(4))),
        Act::After(1, Box::new(Act::Fault(FaultKind::Learned))),
        after(1, Act::Fault(FaultKind::Learned)),
        Act::Reply,
    ]);
    let budget = self::budget(BudgetConfig::default());
    let error = patient(&fake, short, &budget).chat(&chat("x"), &deaf()).await.unwrap_err();
    assert!(error.to_string().contains("model.call_timeout_s = 10"), "{error}");
    assert_eq!((fake.attempts(), budget.used().0.calls), (3, 3), "nothing is sent, nothing is paid for");
}

#[tokio::test(start_paused = true)]
async fn the_cap_on_time_ends_every_wait_and_nothing_is_sent_after_it() {
    // A server that asks for a minute; a minute's quota that is used up.
    for (acts, quota) in [(vec![temporary(Some(50)), Act::Reply], 0), (vec![Act::Reply], 1)] {
        let fake = Fake::new(acts);
        let time = budget(BudgetConfig { max_seconds: 20, ..BudgetConfig::default() });
        let model = patient(&fake, limits(), &time).within(Quota::new(0, quota, 0));
        let start = Instant::now();
        let (live, request) = (deaf(), chat("x"));
        if quota == 1 {
            model.chat(&request, &live).await.unwrap();
        }
        let error = model.chat(&request, &live).await.unwrap_err();
        assert!(error.to_string().contains("budget.max_seconds = 20"), "{error}");
        assert!((19..=20).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
        assert_eq!((fake.attempts(), time.used().0.calls, time.used().1), (1, 1, Usage::default()));
    }
}

#[tokio::test(start_paused = true)]
async fn every_attempt_is_paid_for_also_one_that_nobody_waited_for() {
    let fake = Fake::new([temporary(Some(1)), Act::Fault(FaultKind::Learned), Act::Reply, Act::Hang]);
    let budget = budget(BudgetConfig::default());
    let model = patient(&fake, limits(), &budget);
    model.chat(&chat("x"), &deaf()).await.unwrap();
    let (request, live) = (chat("y"), deaf());
    assert!(tokio::time::timeout(Duration::from_secs(5), model.chat(&request, &live)).await.is_err());
    let (used, held) = budget.used();
    assert_eq!((used.calls, held), (4, Usage::default()));
    assert_eq!(fake.attempts(), 4);
    // Of two attempts nobody knows what they used: they count at their most.
    let most = fake.bound(&request).completion_tokens;
    assert_eq!(used.completion_tokens, 2 + 3 * most);
}

#[tokio::test(start_paused = true)]
async fn no_attempt_goes_over_a_cap_and_the_cap_on_time_ends_one_under_way() {
    let fake = Fake::new([temporary(None)]);
    let calls = budget(BudgetConfig { max_calls: 3, ..BudgetConfig::default() });
    let error = patient(&fake, limits(), &calls).chat(&chat("x"), &deaf()).await.unwrap_err();
    assert!(error.to_string().contains("3 calls used, budget.max_calls = 3"), "{error}");
    assert_eq!(fake.attempts(), 3);

    let fake = Fake::new([Act::Hang]);
    let time = budget(BudgetConfig { max_seconds: 20, ..BudgetConfig::default() });
    let start = Instant::now();
    let error = patient(&fake, limits(), &time).chat(&chat("x"), &deaf()).await.unwrap_err();
    assert!(error.to_string().contains("budget.max_seconds = 20"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(21));
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_server_gets_fewer_calls_at_once_and_all_of_them_are_answered() {
    let mut acts = vec![after(1, overloaded(None)); 8];
    acts.push(after(1, Act::Reply));
    let fake = Fake::new(acts);
    let limiter = Arc::new(Limiter::new(8));
    let breaker = Breakers::default().of("fake.example");
    let model = patient(&fake, limits(), &budget(BudgetConfig::default())).sharing(limiter.clone(), breaker);
    let model = Arc::new(model);
    let calls = (0..30).map(|n| {
        let model = model.clone();
        let request = ChatRequest { path: format!("e01/s001/rollout/item-{n}#0"), ..chat("x") };
        tokio::spawn(async move { model.chat(&request, &deaf()).await.map(|_| ()) })
    });
    let start = Instant::now();
    for call in futures_util::future::join_all(calls).await {
        call.unwrap().unwrap();
    }
    let times = fake.times(start);
    let at_once = |second: u64| times.iter().filter(|time| **time == second).count();
    assert_eq!(at_once(0), 8);
    assert!(times.iter().filter(|time| (1..=2).contains(*time)).count() <= 10, "{times:?}");
    assert!(limiter.limit() > Some(4), "it grows again: {:?}", limiter.limit());
}

#[tokio::test(start_paused = true)]
async fn the_server_s_headers_and_the_configured_minute_hold_calls_back() {
    let fake = Fake::new([Act::Reply]);
    let model = patient(&fake, limits(), &budget(BudgetConfig::default()));
    let requests = Some(Allowance { limit: Some(60), remaining: 0, reset: Duration::from_secs(60) });
    *fake.hint.lock().unwrap() = Some(RateHint { requests, tokens: None });
    let start = Instant::now();
    for _ in 0..3 {
        model.chat(&chat("x"), &deaf()).await.unwrap();
    }
    assert_eq!(fake.times(start), [0, 1, 2], "one a second comes back");

    let fake = Fake::new([Act::Reply]);
    let model = patient(&fake, limits(), &budget(BudgetConfig::default())).within(Quota::new(0, 2, 0));
    let start = Instant::now();
    for _ in 0..5 {
        model.chat(&chat("x"), &deaf()).await.unwrap();
    }
    assert_eq!(fake.times(start), [0, 0, 60, 60, 120]);
}

fn with_prompt(system: &str, path: &str) -> ChatRequest {
    let messages = vec![Message::new(Speaker::System, system), Message::new(Speaker::User, path)];
    ChatRequest { prompt: Prompt::Chat(messages), path: path.into(), role: Role::Target, ..chat("x") }
}

#[tokio::test(start_paused = true)]
async fn a_new_long_prompt_goes_one_first_also_when_that_one_fails() {
    let long = "a rule of some length\n".repeat(300);
    for first in [after(2, Act::Reply), after(2, temporary(Some(30)))] {
        let fake = Fake::new([first, after(1, Act::Reply)]);
        let model = patient(&fake, limits(), &budget(BudgetConfig::default())).warming_up(true);
        let start = Instant::now();
        let requests: Vec<_> = (0..4).map(|n| with_prompt(&long, &format!("p{n}"))).collect();
        let live = deaf();
        let calls = requests.iter().map(|request| model.chat(request, &live));
        let results = futures_util::future::join_all(calls).await;
        assert!(results.iter().all(Result::is_ok));
        assert_eq!(fake.times(start)[..4], [0, 2, 2, 2]);
    }
    let fake = Fake::new([after(2, Act::Reply)]);
    let model = patient(&fake, limits(), &budget(BudgetConfig::default())).warming_up(false);
    let requests: Vec<_> = (0..4).map(|n| with_prompt(&long, &format!("p{n}"))).collect();
    let (start, live) = (Instant::now(), deaf());
    futures_util::future::join_all(requests.iter().map(|request| model.chat(request, &live))).await;
    assert_eq!(fake.times(start), [0, 0, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_down_holds_its_calls_and_a_fresh_round_answers_them() {
    // Whatever comes after these is answered.
    let mut acts = vec![after(1, temporary(None)); 16];
    acts.push(Act::Reply);
    let fake = Fake::new(acts);
    let board = Breakers::default();
    let mut opened = board.attend();
    let no_retry = Limits { max_retries: 0, ..limits() };
    let limiter = Arc::new(Limiter::new(16));
    let model =
        patient(&fake, no_retry, &budget(BudgetConfig::default())).sharing(limiter, board.of("fake.example"));
    let model = Arc::new(model);
    let calls: Vec<_> = (0..16)
        .map(|n| {
            let model = model.clone();
            let request = ChatRequest { path: format!("item-{n}#0"), ..chat("x") };
            tokio::spawn(async move { model.chat(&request, &deaf()).await })
        })
        .collect();
    let told = opened.wait_for(Option::is_some).await.unwrap().clone().unwrap();
    assert_eq!((told.host.as_str(), told.failures, told.error.as_str()), ("fake.example", 5, "a fault"));
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(fake.attempts(), 16, "nothing is sent while it is open");
    assert!(calls.iter().all(|call| !call.is_finished()));
    board.close();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().text, "fine");
    }
    assert_eq!(fake.attempts(), 32);
}
