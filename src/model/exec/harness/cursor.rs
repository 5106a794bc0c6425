//! `cursor-agent -p`, by its documentation: no client was at hand.

use super::Call;
use crate::config::CursorSandbox;
use crate::model::exec::ExecError;
use crate::model::exec::settings::ExecSettings;
use crate::model::exec::workspace::Workspace;

pub fn call(
    settings: &ExecSettings,
    sandbox: CursorSandbox,
    chat: bool,
    workspace: &Workspace,
) -> Result<Call, ExecError> {
    if !settings.base_url.is_empty() {
        let message = "Cursor Agent calls its vendor only; remove base_url, or use another agent".to_owned();
        return Err(ExecError::Settings { message });
    }
    let mut call = Call::default();
    let work = workspace.work();
    let sandbox = match sandbox {
        CursorSandbox::Unset => CursorSandbox::Enabled,
        sandbox => sandbox,
    };
    call.args(&["-p", "--output-format", "stream-json", "--trust", "--workspace", &work.to_string_lossy()]);
    call.args(&["--sandbox", sandbox.word()]);
    call.args(if chat { &["--mode", "ask"] } else { &["--force"] });
    if !settings.model.is_empty() {
        call.args(&["--model", &settings.model]);
    }
    call.set("CURSOR_CONFIG_DIR", workspace.home().join(".cursor").to_string_lossy());
    call.set("CURSOR_DATA_DIR", workspace.home().join(".cursor-data").to_string_lossy());
    call.key(settings, "CURSOR_API_KEY");
    Ok(call)
}
