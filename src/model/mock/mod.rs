//! A scripted model server on loopback that speaks the dialects of the vendors, for tests and for `planish mock-serve`.
//! Must not be used by anything that answers a real run.

mod access;
mod answer;
mod conversation;
mod delivery;
mod dialect;
mod fault;
pub mod hostile;
mod listing;
mod log;
mod playbook;
mod reading;
mod reference;
mod route;
mod script;
mod server;
mod turn;
mod wire;

pub use answer::{Answer, Detailed, FixedUsage, Json, ScriptedCall};
pub use dialect::Dialect;
pub use fault::{Comments, Drip, Fault, WaitForm};
pub use log::RequestLog;
pub use reference::reference;
pub use script::{Chaos, Pick, RateHeaders, RequiredKey, Rule, Script, ScriptError};
pub use server::{MockError, MockServer, SeenRequest};
