//! The hard budget of a run: calls, tokens, money, wall time, shared by all roles. Every attempt is reserved at its most
//! before it is sent, so the totals never pass a cap. Must not decide what happens when it is exhausted.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::ModelError;
use super::ledger::{Balance, Ledger, LedgerError, Purpose};
use super::prices::{Prices, Tariff};
use crate::config::BudgetConfig;
use crate::domain::{ChatRequest, Usage};

/// Hears of attempts that were paid for and gave no reply.
pub type UnansweredSink = Box<dyn Fn(&Purpose, Usage) + Send + Sync>;

/// Money is limited, but nobody knows what a model costs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct NoPrice {
    pub model: String,
    /// The file of `budget.prices`; empty: none.
    pub file: String,
}

impl std::fmt::Display for NoPrice {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { model, file } = self;
        let row = format!(
            "`[[model]] name = {model:?}, input = …, output = …` (US dollars per million tokens, one key a line)"
        );
        write!(out, "budget.max_usd needs the price of {model:?}, which is not known; ")?;
        match file.as_str() {
            "" => write!(out, "write {row} into a TOML file and name it in budget.prices"),
            file => write!(out, "add {row} to {file}"),
        }
    }
}

/// What a run has used, what is under way, and the caps on both.
pub struct Budget {
    book: Mutex<Book>,
    /// An attempt ended, or a cap was moved.
    changed: Notify,
    started: Instant,
    seconds_before: f64,
    unanswered: OnceLock<UnansweredSink>,
    prices: Prices,
}

struct Book {
    limits: BudgetConfig,
    spent: Usage,
    /// The most that attempts under way can use.
    held: Usage,
    in_flight: usize,
    /// Models whose calls count as free, since no price is known.
    unpriced: Vec<String>,
    /// `None`: nothing outlives the process.
    ledger: Option<Ledger>,
}

impl Budget {
    /// A budget that is counted in memory only, at the built-in prices. `used` and `seconds_before` were spent before; the
    /// clock starts now.
    pub fn new(limits: BudgetConfig, used: Usage, seconds_before: f64) -> Self {
        Self::of(limits, used, None, seconds_before)
    }

    pub fn at_prices(mut self, prices: Prices) -> Self {
        self.prices = prices;
        self
    }

    /// What calls of a model cost. Without a price they count as free, unless money is limited.
    ///
    /// # Errors
    /// Money is limited and no price is known.
    pub fn tariff(&self, model: &str) -> Result<Tariff, NoPrice> {
        if let Some(tariff) = self.prices.tariff(model) {
            return Ok(tariff);
        }
        let mut book = self.book();
        if book.limits.max_usd > 0.0 {
            return Err(NoPrice { model: model.to_owned(), file: book.limits.prices.clone() });
        }
        book.unpriced.push(model.to_owned());
        Ok(Tariff::FREE)
    }

    /// Whether other limits may take effect now.
    ///
    /// # Errors
    /// They limit money, and calls of a model have counted as free.
    pub fn may_become(&self, limits: &BudgetConfig) -> Result<(), NoPrice> {
        match self.book().unpriced.first() {
            Some(model) if limits.max_usd > 0.0 => {
                Err(NoPrice { model: model.clone(), file: limits.prices.clone() })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// A budget whose book is kept in a file. `known` is what the journal says was spent.
    ///
    /// # Errors
    /// A book that cannot be read or written.
    pub fn open(
        limits: BudgetConfig,
        known: Usage,
        seconds_before: f64,
        path: &Path,
    ) -> Result<(Self, Balance), LedgerError> {
        let (ledger, balance) = Ledger::open(path, known)?;
        Ok((Self::of(limits, balance.spent, Some(ledger), seconds_before), balance))
    }

    fn of(limits: BudgetConfig, spent: Usage, ledger: Option<Ledger>, seconds_before: f64) -> Self {
        let book = Book { limits, spent, held: Usage::default(), in_flight: 0, unpriced: Vec::new(), ledger };
        Self {
            book: Mutex::new(book),
            changed: Notify::new(),
            started: Instant::now(),
            seconds_before,
            unanswered: OnceLock::new(),
            prices: Prices::built_in(),
        }
    }

    /// Whom to tell of attempts without a reply; the first one stays.
    pub fn tell_unanswered(&self, sink: UnansweredSink) {
        let _ = self.unanswered.set(sink);
    }

    /// Holds back `most` for an attempt at `request`, which is to be sent at once. Where that does not fit but attempts
    /// under way may use less than is held for them, waits for them.
    ///
    /// # Errors
    /// [`ModelError::Budget`] with the cap, the numbers and the remedy, once nothing is under way any more: what was paid
    /// for shall not be lost.
    pub async fn reserve(&self, request: &ChatRequest, most: Usage) -> Result<Reservation<'_>, ModelError> {
        let purpose = Purpose { role: request.role, stage: request.stage.clone() };
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            let lasts = {
                let mut book = self.book();
                let seconds = self.seconds();
                let refusal = book.refusal(book.held, most, seconds, &purpose.stage);
                match refusal {
                    None => {
                        let id = book.begin(&purpose, most)?;
                        drop(book);
                        return Ok(Reservation { budget: self, purpose, most, id, settled: false });
                    }
                    Some(limit) if book.in_flight == 0 => return Err(ModelError::Budget { limit }),
                    Some(_) => time_left(&book.limits, seconds).filter(|left| !left.is_zero()),
                }
            };
            match lasts {
                None => changed.await,
                Some(left) => {
                    let _ = tokio::time::timeout(left, changed).await;
                }
            }
        }
    }

    /// Counts go on; a cap below them ends the run with the next call.
    pub fn set_limits(&self, limits: BudgetConfig) {
        self.book().limits = limits;
        self.changed.notify_waiters();
    }

    /// What is spent, and held for attempts under way.
    pub fn used(&self) -> (Usage, Usage) {
        let book = self.book();
        (book.spent, book.held)
    }

    /// Seconds of this process and of those before it.
    pub fn seconds(&self) -> f64 {
        self.seconds_before + self.started.elapsed().as_secs_f64()
    }

    /// Whether `most` fits beside what is spent, with nothing held back for it.
    ///
    /// # Errors
    /// As [`Budget::reserve`]; it would not fit once all that is under way has ended for nothing.
    pub fn allows(&self, request: &ChatRequest, most: Usage) -> Result<(), ModelError> {
        let seconds = self.seconds();
        let refusal = self.book().refusal(Usage::default(), most, seconds, &request.stage);
        refusal.map_or(Ok(()), |limit| Err(ModelError::Budget { limit }))
    }

    /// Ends when the cap on wall time is reached, with what stops the run then.
    pub async fn out_of_time(&self) -> ModelError {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let (limits, seconds) = (self.book().limits.clone(), self.seconds());
            if let Some(limit) = past_time(&limits, seconds) {
                return ModelError::Budget { limit };
            }
            match time_left(&limits, seconds) {
                None => changed.await,
                Some(left) => {
                    let _ = tokio::time::timeout(left, changed).await;
                }
            }
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, id: Option<u64>, most: Usage, used: Usage, answered: bool) {
        let mut book = self.book();
        book.held = minus(book.held, most);
        book.in_flight -= 1;
        book.spent += used;
        if let (Some(ledger), Some(id)) = (&mut book.ledger, id)
            && let Err(error) = ledger.end(id, used, answered)
        {
            // The next host counts the attempt at its most, and the next attempt meets the same disk.
            eprintln!("error: {error}");
        }
        drop(book);
        self.changed.notify_waiters();
    }
}

impl Book {
    /// Why `most` more does not fit beside what is spent and held.
    fn refusal(&self, held: Usage, most: Usage, seconds: f64, stage: &str) -> Option<String> {
        let limits = &self.limits;
        if let Some(limit) = past_time(limits, seconds) {
            return Some(limit);
        }
        let spent = &self.spent;
        let passes = |limit: u64, spent: u64, held: u64, most: u64| {
            limit > 0 && spent.saturating_add(held).saturating_add(most) > limit
        };
        if passes(limits.max_calls, spent.calls, held.calls, most.calls) {
            return Some(format!(
                "{} calls used, budget.max_calls = {}; raise it and resume",
                spent.calls.saturating_add(held.calls),
                limits.max_calls
            ));
        }
        if passes(limits.max_tokens, spent.tokens(), held.tokens(), most.tokens()) {
            return Some(format!(
                "{} tokens used, budget.max_tokens = {}, and the next call ({stage}) may take up to {}; raise it and \
                 resume",
                spent.tokens(),
                limits.max_tokens,
                most.tokens()
            ));
        }
        if passes(nanodollars(limits.max_usd), spent.nanodollars, held.nanodollars, most.nanodollars) {
            return Some(format!(
                "${:.4} used, budget.max_usd = {}, and the next call ({stage}) may cost up to ${:.4}; raise it and resume",
                spent.dollars(),
                limits.max_usd,
                most.dollars()
            ));
        }
        None
    }

    fn begin(&mut self, purpose: &Purpose, most: Usage) -> Result<Option<u64>, ModelError> {
        let id = match &mut self.ledger {
            Some(ledger) => Some(
                ledger
                    .begin(purpose, most)
                    .map_err(|error| ModelError::Store { message: error.to_string() })?,
            ),
            None => None,
        };
        self.held += most;
        self.in_flight += 1;
        Ok(id)
    }
}

fn past_time(limits: &BudgetConfig, seconds: f64) -> Option<String> {
    (limits.max_seconds > 0 && seconds >= limits.max_seconds as f64).then(|| {
        format!("{seconds:.0} seconds used, budget.max_seconds = {}; raise it and resume", limits.max_seconds)
    })
}

fn time_left(limits: &BudgetConfig, seconds: f64) -> Option<Duration> {
    let left = limits.max_seconds as f64 - seconds;
    (limits.max_seconds > 0).then(|| Duration::try_from_secs_f64(left).unwrap_or_default())
}

/// A cap in US dollars, rounded down; what is below a billionth is still a cap.
fn nanodollars(dollars: f64) -> u64 {
    if dollars > 0.0 { ((dollars * 1e9) as u64).max(1) } else { 0 }
}

fn minus(held: Usage, most: Usage) -> Usage {
    Usage {
        calls: held.calls - most.calls,
        prompt_tokens: held.prompt_tokens - most.prompt_tokens,
        completion_tokens: held.completion_tokens - most.completion_tokens,
        cached_tokens: held.cached_tokens - most.cached_tokens,
        reasoning_tokens: held.reasoning_tokens - most.reasoning_tokens,
        cache_write_tokens: held.cache_write_tokens - most.cache_write_tokens,
        nanodollars: held.nanodollars - most.nanodollars,
    }
}

/// One attempt taken out of a [`Budget`]. Dropped, it counts at its most: it was sent, and nobody saw its end.
pub struct Reservation<'a> {
    budget: &'a Budget,
    purpose: Purpose,
    most: Usage,
    id: Option<u64>,
    settled: bool,
}

impl Reservation<'_> {
    /// There is a reply, which used this.
    pub fn answered(mut self, used: Usage) {
        self.settled = true;
        self.budget.settle(self.id, self.most, used, true);
    }

    /// There is none; `None`: nobody knows what was used.
    pub fn unanswered(mut self, used: Option<Usage>) {
        self.end_unanswered(used.unwrap_or(self.most));
    }

    fn end_unanswered(&mut self, used: Usage) {
        self.settled = true;
        self.budget.settle(self.id, self.most, used, false);
        if let Some(tell) = self.budget.unanswered.get() {
            tell(&self.purpose, used);
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if !self.settled {
            self.end_unanswered(self.most);
        }
    }
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
