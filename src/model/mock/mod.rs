//! A scripted OpenAI-compatible server on loopback, for tests and for `planish mock-serve`.
//! Must not be used by anything that answers a real run.

mod script;
mod server;
mod wire;

pub use script::{
    Answer, Chaos, Detailed, Fault, FixedUsage, Json, Pick, Rule, Script, ScriptError, hostile,
};
pub use server::{MockError, MockServer, SeenRequest};
