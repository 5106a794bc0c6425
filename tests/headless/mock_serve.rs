//! `mock-serve` as a program: what it says of a script, and that it serves and writes down what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;

use serde_json::Value;

use crate::place::{Place, kind};

/// Ended with the test.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_are_checked_without_serving() {
    let place = Place::new().await;
    place.write("good.toml", "[[rules]]\nanswers = [\"42\"]\n");
    place.write("bad.toml", "[[rules]]\nname = \"sum\"\nanswers = [{ txt = \"42\", tool = \"t\" }]\n");
    let good = place.planish(&["mock-serve", "--check", "good.toml"]);
    assert_eq!((good.code, good.out.as_str()), (Some(0), "good.toml: 1 rules\n"));
    for arguments in [&["mock-serve", "--check", "bad.toml"][..], &["mock-serve", "bad.toml"]] {
        let bad = place.planish(arguments);
        assert_eq!((bad.code, bad.out.as_str()), (Some(2), ""));
        assert!(
            bad.err.starts_with("error: bad.toml: rule 1 (sum): answer 1: unknown key `txt`"),
            "{}",
            bad.err
        );
    }
    let help = place.planish(&["mock-serve", "--help"]);
    assert!(
        help.out.contains("require_reasoning") && help.out.contains("fault = \"no_done\""),
        "{}",
        help.out
    );
    assert_eq!(place.planish(&["mock-serve"]).code, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_is_served_and_requests_are_written_down() {
    let place = Place::new().await;
    place.write("s.toml", "[[rules]]\nname = \"sum\"\ndialect = \"messages\"\nanswers = [\"42\"]\n");
    let mut served =
        Served(place.command(&["mock-serve", "s.toml", "--log", "asked.jsonl"]).spawn().unwrap());
    let mut lines = BufReader::new(served.0.stdout.take().unwrap()).lines();
    let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(kind(&first), "listening");
    let origin = first["listening"]["origin"].as_str().unwrap();
    assert_eq!(first["listening"]["base_url"], format!("{origin}/v1"));

    let body = r#"{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "6*7?"}]}"#;
    let mut stream = TcpStream::connect(origin.trim_start_matches("http://")).unwrap();
    let head = format!("x-api-key: secret-key\r\nconnection: close\r\ncontent-length: {}", body.len());
    write!(stream, "POST /v1/messages HTTP/1.1\r\nhost: x\r\n{head}\r\n\r\n{body}").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains(r#""text":"42""#), "{answer}");

    let log = std::fs::read_to_string(place.path("asked.jsonl")).unwrap();
    let line: Value = serde_json::from_str(log.trim_end()).unwrap();
    assert_eq!((&line["path"], &line["rule"]), (&"/v1/messages".into(), &"sum".into()));
    assert!(!log.contains("secret-key"), "{log}");
}
