//! Files that matter to the workbench, watched for change: by the system where it tells, and by a look every two
//! seconds where it does not (network file systems). Reads no file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use notify::{RecursiveMode, Watcher};
use tokio::sync::{mpsc, oneshot};

const LOOK: Duration = Duration::from_secs(2);
/// Editors write in several steps.
const WRITTEN: Duration = Duration::from_millis(30);

/// When a file was changed, and how long it is; `None`: there is none.
type Stamp = Option<(SystemTime, u64)>;

/// Files to watch, and who wants to know that they are.
type Wanted = (Vec<PathBuf>, oneshot::Sender<()>);

/// Watches until it is dropped.
pub struct Watch {
    files: mpsc::UnboundedSender<Wanted>,
    changed: mpsc::Receiver<PathBuf>,
}

impl Watch {
    pub fn start() -> Self {
        let (files, wanted) = mpsc::unbounded_channel();
        let (tell, changed) = mpsc::channel(64);
        tokio::spawn(watch(wanted, tell));
        Self { files, changed }
    }

    /// What is watched from now on. The result comes once it is: what changes after that is told.
    pub fn set(&self, files: Vec<PathBuf>) -> oneshot::Receiver<()> {
        let (watched, known) = oneshot::channel();
        // The task ends only with this value.
        let _ = self.files.send((files, watched));
        known
    }

    /// The next file that has changed.
    pub async fn changed(&mut self) -> Option<PathBuf> {
        self.changed.recv().await
    }
}

async fn watch(mut wanted: mpsc::UnboundedReceiver<Wanted>, tell: mpsc::Sender<PathBuf>) {
    let (stir, mut stirred) = mpsc::channel::<()>(1);
    // Without inotify (a sandbox, too many watches) the looks have to do.
    let mut watcher = notify::recommended_watcher(move |_| {
        // One that waits already is enough.
        let _ = stir.try_send(());
    })
    .ok();
    let mut stamps: HashMap<PathBuf, Stamp> = HashMap::new();
    loop {
        tokio::select! {
            files = wanted.recv() => {
                let Some((files, watched)) = files else { return };
                let new = files.iter().filter(|file| !stamps.contains_key(*file));
                for folder in new.filter_map(|file| file.parent()) {
                    // Watched as folders: editors replace files. One that is not there is left to the looks.
                    let folder = if folder == Path::new("") { Path::new(".") } else { folder };
                    let _ = watcher.as_mut().map(|watcher| watcher.watch(folder, RecursiveMode::NonRecursive));
                }
                let now = looked_at(files).await;
                let known = std::mem::take(&mut stamps);
                stamps = now.into_iter().map(|(file, now)| {
                    let stamp = known.get(&file).copied().unwrap_or(now);
                    (file, stamp)
                }).collect();
                // Most do not wait for it.
                let _ = watched.send(());
            }
            Some(()) = stirred.recv() => tokio::time::sleep(WRITTEN).await,
            () = tokio::time::sleep(LOOK) => {}
        }
        for (file, now) in looked_at(stamps.keys().cloned().collect()).await {
            if stamps.insert(file.clone(), now) != Some(now) && tell.send(file).await.is_err() {
                return;
            }
        }
    }
}

/// A file system that hangs holds up no other task.
async fn looked_at(files: Vec<PathBuf>) -> Vec<(PathBuf, Stamp)> {
    let look = || files.into_iter().map(|file| (file.clone(), stamp(&file))).collect();
    // Only a runtime that ends gives no answer.
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

fn stamp(file: &Path) -> Stamp {
    let file = std::fs::metadata(file).ok()?;
    Some((file.modified().ok()?, file.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Until `file` is told; a write in two goes may be told twice.
    async fn told(watch: &mut Watch, file: &Path) {
        while watch.changed().await.as_deref() != Some(file) {}
    }

    #[tokio::test]
    async fn a_changed_a_new_and_a_replaced_file_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("a.toml"), folder.path().join("b.toml"));
        std::fs::write(&first, "1").unwrap();
        let mut watch = Watch::start();
        watch.set(vec![first.clone(), second.clone()]).await.unwrap();
        std::fs::write(&first, "two").unwrap();
        told(&mut watch, &first).await;
        std::fs::write(&second, "new").unwrap();
        told(&mut watch, &second).await;
        let replaced = folder.path().join("x");
        std::fs::write(&replaced, "replaced").unwrap();
        std::fs::rename(&replaced, &first).unwrap();
        told(&mut watch, &first).await;
    }
}
