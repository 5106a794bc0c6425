//! `planish-torch`: the worker that loads a model and answers JSON lines on stdio. All libtorch code of the project
//! lives below this file; the library never names it.

mod batch;
mod completion;
mod cpu;
mod dequant;
mod engine;
mod gguf;
mod kernels;
mod pool;
mod sampler;
mod serve;
mod slots;
mod tokenizer;
mod torch;
mod weights;

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    // libgomp reads its wait policy before `main`: its threads must sleep, not spin, beside other programs.
    if std::env::var_os("OMP_WAIT_POLICY").is_none()
        && let Ok(exe) = std::env::current_exe()
    {
        let error =
            Command::new(exe).args(std::env::args_os().skip(1)).env("OMP_WAIT_POLICY", "passive").exec();
        eprintln!("planish-torch: cannot restart with OMP_WAIT_POLICY=passive: {error}; going on without");
    }
    if let Some(argument) = std::env::args().nth(1) {
        eprintln!("planish-torch takes no arguments (got {argument:?}); it reads JSON lines on stdin");
        return ExitCode::from(2);
    }
    match serve::serve() {
        Ok(()) => ExitCode::SUCCESS,
        // The client went away; there is nobody to tell.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("planish-torch: cannot write replies: {error}");
            ExitCode::FAILURE
        }
    }
}
