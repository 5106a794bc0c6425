//! Whether a run has a living host. Read-only.

use std::path::Path;

use crate::host::{AnnounceError, HostFile};
use crate::store::host_name;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    Live(HostFile),
    /// Announced by another machine, which cannot be checked from here.
    Elsewhere(HostFile),
    /// No host, or one that died.
    Dead,
}

/// Looks at `<run>/host.json`; a file left by a dead process counts as none.
pub fn presence(run_dir: &Path) -> Result<Presence, AnnounceError> {
    Ok(match HostFile::read(run_dir)? {
        None => Presence::Dead,
        Some(file) if file.is_alive_here() => Presence::Live(file),
        Some(file) if file.host != host_name() => Presence::Elsewhere(file),
        Some(_) => Presence::Dead,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presence_follows_the_host_file() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(presence(dir.path()).unwrap(), Presence::Dead);
        let mut file = HostFile::of_this_process(Path::new("/x.sock")).unwrap();
        file.write(dir.path()).unwrap();
        assert_eq!(presence(dir.path()).unwrap(), Presence::Live(file.clone()));
        file.start_time += 1;
        file.write(dir.path()).unwrap();
        assert_eq!(presence(dir.path()).unwrap(), Presence::Dead);
        file.host = "elsewhere".into();
        file.write(dir.path()).unwrap();
        assert_eq!(presence(dir.path()).unwrap(), Presence::Elsewhere(file));
    }
}
