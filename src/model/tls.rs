//! The one implementation of TLS that HTTP clients of this process use. Must not build clients.

use std::sync::Once;

/// To be called before a client is built.
pub fn install_provider() {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // An error means that another provider is installed already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
