//! What programs that planish starts see of its environment: names on a list, never the keys of roles. Must not start
//! anything.

use std::ffi::OsString;

/// What nearly every program needs, and nothing that is a secret.
const ORDINARY: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "TMPDIR",
    "TEMP",
    "TMP",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
];
const ORDINARY_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// Of the worker: where its libraries are, which devices and how many threads it may use, a way to another machine.
pub const WORKER: &[&str] = &[
    "LD_",
    "DYLD_",
    "LIBTORCH",
    "TORCH_",
    "PYTORCH_",
    "CUDA_",
    "NVIDIA_",
    "OMP_",
    "GOMP_",
    "KMP_",
    "MKL_",
    "OPENBLAS_",
    "PLANISH_",
    "RUST_",
    "SSH_AUTH_SOCK",
];

/// Of the Azure command line program: where its login is.
pub const AZURE_CLI: &[&str] =
    &["AZURE_CONFIG_DIR", "AZURE_EXTENSION_DIR", "AZURE_CORE_", "AZURE_CLOUD_NAME"];

/// The environment of a program that needs `more` (names or their beginnings) besides what is ordinary.
pub fn allowed(more: &[&str]) -> Vec<(OsString, OsString)> {
    pick(std::env::vars_os(), |name| passes(name, more))
}

fn passes(name: &str, more: &[&str]) -> bool {
    let listed = || ORDINARY_PREFIXES.iter().chain(more).any(|start| name.starts_with(start));
    ORDINARY.contains(&name) || (listed() && !sounds_secret(name))
}

fn sounds_secret(name: &str) -> bool {
    let name = name.to_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"].iter().any(|word| name.contains(word))
}

/// The whole environment but these names.
pub fn without(names: &[String]) -> Vec<(OsString, OsString)> {
    pick(std::env::vars_os(), |name| !names.iter().any(|hidden| hidden == name))
}

fn pick(
    all: impl Iterator<Item = (OsString, OsString)>,
    passes: impl Fn(&str) -> bool,
) -> Vec<(OsString, OsString)> {
    all.filter(|(name, _)| name.to_str().is_some_and(&passes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_see_what_they_need_and_no_secrets() {
        for (name, more, expected) in [
            ("PATH", AZURE_CLI, true),
            ("LC_ALL", WORKER, true),
            ("CUDA_VISIBLE_DEVICES", WORKER, true),
            ("CUDA_VISIBLE_DEVICES", AZURE_CLI, false),
            ("AZURE_CONFIG_DIR", AZURE_CLI, true),
            ("AZURE_OPENAI_API_KEY", AZURE_CLI, false),
            ("PLANISH_TEST_KEY", WORKER, false),
            ("OPENAI_API_KEY", WORKER, false),
            ("MY_OWN", WORKER, false),
        ] {
            assert_eq!(passes(name, more), expected, "{name}");
        }
    }
}
