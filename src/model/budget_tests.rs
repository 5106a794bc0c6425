use std::sync::Arc;

use super::*;
use crate::domain::{Asks, Prompt, Role, Sampling};

fn limits(max_calls: u64, max_tokens: u64, max_seconds: u64) -> BudgetConfig {
    BudgetConfig { max_calls, max_tokens, max_seconds, ..BudgetConfig::default() }
}

fn call() -> ChatRequest {
    ChatRequest {
        path: "p".into(),
        role: Role::Target,
        stage: "rollout".into(),
        prompt: Prompt::Text("x".into()),
        sampling: Sampling {
            max_tokens: 9,
            temperature: None,
            top_p: None,
            top_k: None,
            seed: None,
            stop: Vec::new(),
        },
        asks: Asks::default(),
        workspace: None,
        brief: None,
    }
}

fn usage(tokens: u64) -> Usage {
    Usage { calls: 1, completion_tokens: tokens, ..Usage::default() }
}

async fn refusal(budget: &Budget, most: Usage) -> String {
    match budget.reserve(&call(), most).await {
        Err(ModelError::Budget { limit }) => limit,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it fits"),
    }
}

/// Whether a reservation waits.
async fn waits(budget: &Budget, most: Usage) -> bool {
    let wait = tokio::time::timeout(Duration::from_millis(1), budget.reserve(&call(), most)).await;
    wait.is_err()
}

#[tokio::test(start_paused = true)]
async fn every_attempt_counts_also_one_that_was_dropped() {
    let budget = Budget::new(limits(3, 0, 0), Usage { calls: 1, ..Usage::default() }, 0.0);
    let first = budget.reserve(&call(), usage(9)).await.unwrap();
    drop(budget.reserve(&call(), usage(9)).await.unwrap());
    assert!(waits(&budget, usage(9)).await, "what is under way is not given up for nothing");
    first.answered(usage(5));
    assert!(refusal(&budget, usage(9)).await.contains("3 calls used, budget.max_calls = 3"));
    assert_eq!(
        budget.used(),
        (Usage { calls: 3, completion_tokens: 14, ..Usage::default() }, Usage::default())
    );
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_waits_for_what_is_under_way_and_stops_when_nothing_is() {
    let budget = Arc::new(Budget::new(limits(0, 100, 0), Usage::default(), 0.0));
    let held = budget.reserve(&call(), usage(60)).await.unwrap();
    assert!(waits(&budget, usage(50)).await);
    let waiting = tokio::spawn({
        let budget = budget.clone();
        async move { budget.reserve(&call(), usage(50)).await.map(|held| held.answered(usage(50))) }
    });
    tokio::task::yield_now().await;
    held.answered(usage(10));
    waiting.await.unwrap().unwrap();
    let told = refusal(&budget, usage(50)).await;
    assert!(told.contains("60 tokens used, budget.max_tokens = 100"), "{told}");
    assert!(told.contains("the next call (rollout) may take up to 50"), "{told}");
    assert!(budget.reserve(&call(), usage(40)).await.is_ok(), "a smaller one still fits");
}

#[tokio::test(start_paused = true)]
async fn money_is_held_at_its_most_and_a_raised_cap_lets_the_waiting_go() {
    let capped = |max_usd| BudgetConfig { max_usd, ..BudgetConfig::default() };
    let cost = |nanodollars| Usage { nanodollars, ..usage(1) };
    let budget = Arc::new(Budget::new(capped(0.001), cost(400_000), 0.0));
    let held = budget.reserve(&call(), cost(600_000)).await.unwrap();
    let waiting = tokio::spawn({
        let budget = budget.clone();
        async move { budget.reserve(&call(), cost(2_000_000)).await.map(|held| held.answered(cost(1))) }
    });
    tokio::task::yield_now().await;
    budget.set_limits(capped(0.01));
    waiting.await.unwrap().unwrap();
    held.unanswered(None);
    budget.set_limits(capped(0.0011));
    let told = refusal(&budget, cost(200_000)).await;
    assert!(told.contains("$0.0010 used, budget.max_usd = 0.0011"), "{told}");
    assert!(told.contains("may cost up to $0.0002"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn tokens_and_seconds_before_a_resume_count() {
    let used = Usage { prompt_tokens: 60, completion_tokens: 39, ..Usage::default() };
    let budget = Budget::new(limits(0, 100, 0), used, 0.0);
    assert!(refusal(&budget, usage(2)).await.contains("99 tokens used"));
    budget.reserve(&call(), usage(1)).await.unwrap().answered(usage(1));

    let budget = Budget::new(limits(0, 0, 10), Usage::default(), 4.0);
    tokio::time::advance(Duration::from_secs(5)).await;
    assert!(budget.reserve(&call(), usage(1)).await.is_ok());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(refusal(&budget, usage(1)).await.contains("10 seconds used, budget.max_seconds = 10"));
}

#[test]
fn a_model_without_a_price_is_free_until_money_is_limited() {
    let capped = BudgetConfig { max_usd: 1.0, ..BudgetConfig::default() };
    let free = Budget::new(BudgetConfig::default(), Usage::default(), 0.0);
    assert!(free.may_become(&capped).is_ok());
    assert_eq!(free.tariff("nobody's").unwrap(), Tariff::FREE);
    assert!(free.tariff("gpt-4o").unwrap() != Tariff::FREE);
    let refused = free.may_become(&capped).unwrap_err().to_string();
    assert!(
        refused.contains("needs the price of \"nobody's\"") && refused.contains("budget.prices"),
        "{refused}"
    );
    assert!(free.may_become(&BudgetConfig { max_calls: 1, ..BudgetConfig::default() }).is_ok());
    let limited = Budget::new(BudgetConfig { prices: "mine.toml".into(), ..capped }, Usage::default(), 0.0);
    let refused = limited.tariff("nobody's").unwrap_err().to_string();
    assert!(refused.ends_with("to mine.toml"), "{refused}");
    assert!(limited.tariff("gpt-4o").is_ok());
}

#[tokio::test]
async fn attempts_without_a_reply_are_told_with_what_they_cost() {
    let budget = Budget::new(BudgetConfig::default(), Usage::default(), 0.0);
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = told.clone();
    budget.tell_unanswered(Box::new(move |purpose, used| {
        heard.lock().unwrap().push((purpose.stage.clone(), used.completion_tokens));
    }));
    budget.reserve(&call(), usage(9)).await.unwrap().answered(usage(1));
    budget.reserve(&call(), usage(9)).await.unwrap().unanswered(Some(usage(2)));
    budget.reserve(&call(), usage(9)).await.unwrap().unanswered(None);
    drop(budget.reserve(&call(), usage(9)).await.unwrap());
    let stage = || "rollout".to_owned();
    assert_eq!(*told.lock().unwrap(), [(stage(), 2), (stage(), 9), (stage(), 9)]);
}

#[tokio::test]
async fn a_book_in_a_file_outlives_the_process() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.jsonl");
    let open = || Budget::open(limits(3, 0, 0), Usage::default(), 0.0, &path).unwrap();
    let (budget, _) = open();
    budget.reserve(&call(), usage(9)).await.unwrap().answered(usage(1));
    // As a killed host leaves it.
    std::mem::forget(budget.reserve(&call(), usage(9)).await.unwrap());
    let (budget, balance) = open();
    assert_eq!(balance.spent, Usage { calls: 2, completion_tokens: 10, ..Usage::default() });
    assert_eq!(balance.unanswered.into_values().collect::<Vec<_>>(), [usage(9)]);
    drop(budget.reserve(&call(), usage(9)).await.unwrap());
    assert!(refusal(&budget, usage(9)).await.contains("3 calls used"));
}
