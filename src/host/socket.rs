//! The private socket of one run: where it lies, who may open it, and how a stale one is replaced.
//! It must never follow a link or trust a directory that somebody else owns.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use tokio::net::UnixListener;

use crate::domain::short_hash;
use crate::store::host_name;

/// `sun_path` holds 108 bytes on Linux and less elsewhere.
const MAX_PATH: usize = 100;

#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    #[error("{path} {problem}; remove it or set XDG_RUNTIME_DIR to a private directory of yours")]
    Unsafe { path: String, problem: String },
    #[error(
        "socket path {path} is {length} bytes long (limit {MAX_PATH}); set XDG_RUNTIME_DIR to a shorter path"
    )]
    TooLong { path: String, length: usize },
    #[error("{path} is in use by {holder}; stop that process first")]
    Taken { path: String, holder: String },
    #[error("cannot use {path}: {source}")]
    Io { path: String, source: io::Error },
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> SocketError {
    let path = path.display().to_string();
    move |source| SocketError::Io { path, source }
}

/// A bound listener; its file is removed when dropped.
#[derive(Debug)]
pub struct HostSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl HostSocket {
    /// Binds the socket of a run in the user's runtime directory. Needs a tokio runtime.
    pub fn bind(run_dir: &Path) -> Result<Self, SocketError> {
        Self::bind_in(&runtime_dir()?, run_dir)
    }

    /// As [`HostSocket::bind`], in a given directory, which must be private to this user.
    pub fn bind_in(runtime_dir: &Path, run_dir: &Path) -> Result<Self, SocketError> {
        check_private(runtime_dir)?;
        let run_dir = run_dir.canonicalize().map_err(io_error(run_dir))?;
        let path = runtime_dir.join(format!("{}.sock", short_hash(&run_dir.to_string_lossy())));
        let length = path.as_os_str().len();
        if length >= MAX_PATH {
            return Err(SocketError::TooLong { path: path.display().to_string(), length });
        }
        // Between another host's bind and its listen nobody listens yet: hosts take turns.
        let turn = File::open(runtime_dir).map_err(io_error(runtime_dir))?;
        turn.lock().map_err(io_error(runtime_dir))?;
        remove_stale(&path)?;
        sweep(runtime_dir);
        let listener = UnixListener::bind(&path).map_err(io_error(&path))?;
        fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(io_error(&path))?;
        Ok(Self { listener, path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn listener(&self) -> &UnixListener {
        &self.listener
    }
}

impl Drop for HostSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// `$XDG_RUNTIME_DIR/planish` when that variable names a directory of this user, else `/tmp/planish-UID`;
/// created 0700 and verified.
pub fn runtime_dir() -> Result<PathBuf, SocketError> {
    let own = rustix::process::getuid().as_raw();
    let xdg = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| {
        dir.is_absolute() && fs::metadata(dir).is_ok_and(|meta| meta.is_dir() && meta.uid() == own)
    });
    let dir = match xdg {
        Some(dir) => dir.join("planish"),
        None => PathBuf::from(format!("/tmp/planish-{own}")),
    };
    match DirBuilder::new().mode(0o700).create(&dir) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(io_error(&dir)(error)),
    }
    check_private(&dir)?;
    Ok(dir)
}

fn check_private(dir: &Path) -> Result<(), SocketError> {
    let unsafe_dir = |problem: String| SocketError::Unsafe { path: dir.display().to_string(), problem };
    let meta = fs::symlink_metadata(dir).map_err(io_error(dir))?;
    if !meta.is_dir() {
        return Err(unsafe_dir("is not a directory (links are not followed)".into()));
    }
    if meta.uid() != rustix::process::getuid().as_raw() {
        return Err(unsafe_dir(format!("belongs to user {}", meta.uid())));
    }
    if meta.mode() & 0o077 != 0 {
        return Err(unsafe_dir(format!("has mode {:03o}, not 700", meta.mode() & 0o777)));
    }
    Ok(())
}

fn remove_stale(path: &Path) -> Result<(), SocketError> {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io_error(path)(error)),
    };
    let shown = || path.display().to_string();
    if !meta.file_type().is_socket() {
        return Err(SocketError::Unsafe { path: shown(), problem: "is not a socket".into() });
    }
    match listener(path) {
        Listener::Nobody => fs::remove_file(path).map_err(io_error(path)),
        Listener::Process(pid) => {
            Err(SocketError::Taken { path: shown(), holder: format!("process {pid} on {}", host_name()) })
        }
        Listener::Somebody => Err(SocketError::Taken { path: shown(), holder: "another process".into() }),
    }
}

/// Removes the sockets that killed hosts left behind. What cannot be removed harms nobody.
fn sweep(runtime_dir: &Path) {
    for entry in fs::read_dir(runtime_dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_socket = entry.file_type().is_ok_and(|kind| kind.is_socket());
        if is_socket
            && path.extension().is_some_and(|end| end == "sock")
            && listener(&path) == Listener::Nobody
        {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Who listens on a socket.
#[derive(Debug, PartialEq)]
enum Listener {
    Nobody,
    Process(i32),
    /// It cannot be told who.
    Somebody,
}

/// Never waits, not even for a host that is stopped and takes no connections.
fn listener(path: &Path) -> Listener {
    let connection = net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
        None,
    );
    let (Ok(connection), Ok(address)) = (connection, SocketAddrUnix::new(path)) else {
        return Listener::Somebody;
    };
    match net::connect(&connection, &address) {
        Ok(()) => match sockopt::socket_peercred(&connection) {
            Ok(peer) => Listener::Process(peer.pid.as_raw_pid()),
            Err(_) => Listener::Somebody,
        },
        Err(Errno::CONNREFUSED | Errno::NOENT) => Listener::Nobody,
        Err(_) => Listener::Somebody,
    }
}

/// Only processes of the same user may talk to a host.
pub(super) fn peer_allowed(peer_uid: u32, own_uid: u32) -> bool {
    peer_uid == own_uid
}

#[cfg(test)]
mod tests {
    use super::*;

    fn private_dir() -> tempfile::TempDir {
        tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir().unwrap()
    }

    #[tokio::test]
    async fn the_socket_is_private_short_and_removed() {
        let (runtime, run) = (private_dir(), private_dir());
        let socket = HostSocket::bind_in(runtime.path(), run.path()).unwrap();
        let path = socket.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(path.as_os_str().len() < MAX_PATH);
        let taken = HostSocket::bind_in(runtime.path(), run.path()).unwrap_err();
        let me = format!("in use by process {} on {}", std::process::id(), host_name());
        assert!(taken.to_string().contains(&me), "{taken}");
        drop(socket);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_stale_socket_is_replaced_but_never_a_file() {
        let (runtime, run) = (private_dir(), private_dir());
        let path = HostSocket::bind_in(runtime.path(), run.path()).unwrap().path().to_owned();
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        drop(HostSocket::bind_in(runtime.path(), run.path()).unwrap());

        fs::write(&path, "mine").unwrap();
        let refused = HostSocket::bind_in(runtime.path(), run.path()).unwrap_err();
        assert!(matches!(refused, SocketError::Unsafe { .. }), "{refused}");
        assert_eq!(fs::read(&path).unwrap(), b"mine");
    }

    #[tokio::test]
    async fn sockets_of_killed_hosts_are_swept_and_nothing_else() {
        let (runtime, run, other) = (private_dir(), private_dir(), private_dir());
        let living = HostSocket::bind_in(runtime.path(), other.path()).unwrap();
        // Stopped: it accepts nothing, and its queue is full.
        let stopped = runtime.path().join("stopped.sock");
        let address = SocketAddrUnix::new(&stopped).unwrap();
        let socket = net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        net::bind(&socket, &address).unwrap();
        net::listen(&socket, 0).unwrap();
        let _queued = std::os::unix::net::UnixStream::connect(&stopped).unwrap();
        let (file, foreign) = (runtime.path().join("file.sock"), runtime.path().join("foreign"));
        fs::write(&file, "mine").unwrap();
        drop(std::os::unix::net::UnixListener::bind(&foreign).unwrap());
        let dead = runtime.path().join("dead.sock");
        drop(std::os::unix::net::UnixListener::bind(&dead).unwrap());

        let mine = HostSocket::bind_in(runtime.path(), run.path()).unwrap();
        assert!(!dead.exists());
        for kept in [living.path(), mine.path(), &stopped, &file, &foreign] {
            assert!(kept.exists(), "{}", kept.display());
        }
    }

    #[tokio::test]
    async fn an_open_directory_a_link_and_a_long_path_are_refused() {
        let (runtime, run) = (private_dir(), private_dir());
        let open = runtime.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
        let error = HostSocket::bind_in(&open, run.path()).unwrap_err();
        assert!(error.to_string().contains("mode 755"), "{error}");

        let private = runtime.path().join("private");
        DirBuilder::new().mode(0o700).create(&private).unwrap();
        let link = runtime.path().join("link");
        std::os::unix::fs::symlink(&private, &link).unwrap();
        let error = HostSocket::bind_in(&link, run.path()).unwrap_err();
        assert!(error.to_string().contains("not a directory"), "{error}");

        let long = runtime.path().join("x".repeat(100));
        DirBuilder::new().mode(0o700).create(&long).unwrap();
        let error = HostSocket::bind_in(&long, run.path()).unwrap_err();
        assert!(matches!(error, SocketError::TooLong { .. }), "{error}");
    }

    #[test]
    fn another_user_is_refused_even_root() {
        assert!(peer_allowed(1000, 1000));
        assert!(!peer_allowed(1001, 1000));
        assert!(!peer_allowed(0, 1000));
    }
}
