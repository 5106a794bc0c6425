//! `attach ssh://host/run`: through a stand-in for ssh, and through the real one on loopback.

use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use portable_pty::CommandBuilder;

use crate::on_terminal_with;
use crate::place::{PLANISH, Place};

fn program(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

/// A folder for PATH in which the far machine finds `planish`.
fn far_programs(place: &Place) -> PathBuf {
    let folder = place.path("far-bin");
    std::fs::create_dir(&folder).unwrap();
    symlink(PLANISH, folder.join("planish")).unwrap();
    folder
}

/// A run whose review waits, and its address.
fn waiting(place: &Place) -> String {
    let started =
        place.planish(&["run", "run.toml", "--name", "one", "-o", "review.mode=manual", "--detach"]);
    assert_eq!(started.code, Some(0), "{started:?}");
    format!("ssh://far/{}", place.path("runs/one").display())
}

/// Decides and submits over the link, then sees the run to its end.
fn steer(place: &Place, address: &str, ssh: &Path) {
    let set = |command: &mut CommandBuilder| command.env("PLANISH_SSH", ssh);
    let mut terminal = on_terminal_with(place, &["attach", address], "xterm-256color", set);
    terminal.wait_for("[REVIEW 2]");
    terminal.send("4A");
    terminal.wait_for("[REVIEW submit]");
    terminal.send("\r");
    terminal.wait_for("Submit the review of step 1?");
    terminal.send("\r");
    terminal.wait_for("END  completed");
    terminal.send("q");
    assert_eq!(terminal.wait().0, 0);
    let events = place.planish(&["ctl", "one", "events", "--content"]).json();
    let decided = events.iter().filter(|event| event.get("edit_decided").is_some()).count();
    assert_eq!(decided, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stand_in_for_ssh_carries_the_run() {
    let place = Place::new().await;
    let (address, programs) = (waiting(&place), far_programs(&place));
    let ssh = place.path("ssh");
    // What ssh does with the words after `--`: a host, and a line for the far shell.
    let script = format!(
        "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\n[ \"$2\" = far ] || exit 255\nPATH={}:$PATH exec sh -c \"$3\"\n",
        programs.display()
    );
    program(&ssh, &script);
    steer(&place, &address, &ssh);
}

struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn key(path: &Path) {
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path).status();
    assert!(made.is_ok_and(|made| made.success()), "ssh-keygen (Debian: apt-get install openssh-client)");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs sshd; `make test` runs it where there is one"]
async fn the_real_ssh_carries_the_run() {
    let place = Place::new().await;
    let (address, programs) = (waiting(&place), far_programs(&place));
    let folder = place.path("sshd");
    std::fs::create_dir(&folder).unwrap();
    key(&folder.join("host"));
    key(&folder.join("user"));
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let at = folder.display();
    let config = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {at}/host\nPidFile none\nUsePAM no\nStrictModes no\n\
         AuthorizedKeysFile {at}/user.pub\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n\
         SetEnv PATH={}:/usr/bin:/bin\n",
        programs.display()
    );
    std::fs::write(folder.join("sshd_config"), config).unwrap();
    // Where sshd run by root wants to leave its privileges.
    let _ = std::fs::create_dir_all("/run/sshd");
    let mut sshd = Command::new("/usr/sbin/sshd");
    sshd.args(["-D", "-e", "-f"]).arg(folder.join("sshd_config"));
    sshd.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _daemon = Daemon(sshd.spawn().expect("/usr/sbin/sshd (Debian: apt-get install openssh-server)"));
    let ssh = place.path("ssh");
    // The client waits for a daemon that is just starting.
    let script = format!(
        "#!/bin/sh\nexec ssh -F none -i {at}/user -p {port} -o HostName=127.0.0.1 -o UserKnownHostsFile={at}/known \
         -o StrictHostKeyChecking=accept-new -o ConnectionAttempts=20 -o IdentitiesOnly=yes -o LogLevel=ERROR \"$@\"\n"
    );
    program(&ssh, &script);
    steer(&place, &address, &ssh);
}
