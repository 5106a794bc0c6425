//! Gives `planish-torch` a run path to the libtorch it was built with (tch's own does not travel to dependants).

fn main() {
    println!("cargo:rerun-if-env-changed=LIBTORCH");
    if std::env::var_os("CARGO_FEATURE_TORCH").is_some()
        && let Some(libtorch) = std::env::var_os("LIBTORCH")
    {
        println!("cargo:rustc-link-arg-bin=planish-torch=-Wl,-rpath,{}/lib", libtorch.display());
    }
}
