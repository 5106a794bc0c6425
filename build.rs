//! Gives `planish-torch` a run path to the libtorch it was built with (tch's own does not travel to dependants).

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=LIBTORCH");
    println!("cargo:rerun-if-env-changed=LIBTORCH_USE_PYTORCH");
    if std::env::var_os("CARGO_FEATURE_TORCH").is_some()
        && let Some(lib) = libtorch_lib()
    {
        println!("cargo:rustc-link-arg-bin=planish-torch=-Wl,-rpath,{}", lib.display());
    }
}

/// The same choice as torch-sys makes; `None` leaves the search to the system's loader.
fn libtorch_lib() -> Option<PathBuf> {
    if std::env::var_os("LIBTORCH_USE_PYTORCH").is_some_and(|value| value == "1") {
        let print = "import os, torch; print(os.path.join(os.path.dirname(torch.__file__), 'lib'))";
        let output = Command::new("python3").args(["-c", print]).output().ok()?;
        let lib = String::from_utf8(output.stdout).ok()?;
        return output.status.success().then(|| PathBuf::from(lib.trim()));
    }
    std::env::var_os("LIBTORCH").map(|libtorch| PathBuf::from(libtorch).join("lib"))
}
