//! What programs do with files, as events that a test can wait for.

use super::{MAX_WAIT, Running};
use std::path::Path;
use std::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Open,
    /// A file is created, written to its end, renamed or removed.
    Change,
}

/// Counts the accesses to files in some folders.
pub struct FileEvents {
    #[cfg(target_os = "linux")]
    inotify: std::os::fd::OwnedFd,
    #[cfg(target_os = "linux")]
    name: Option<String>,
    count: usize,
}

impl FileEvents {
    /// Waits for so many accesses from now on.
    pub fn wait_for(&mut self, count: usize) {
        self.receive(false);
        self.count = 0;
        self.wait_while(count, || true);
    }

    /// Waits for so many accesses since the beginning, or for the end of the program that makes them. Returns whether
    /// there were so many.
    pub fn wait_for_or_end(&mut self, count: usize, running: &mut Running) -> bool {
        self.wait_while(count, || !running.has_ended());
        self.count >= count
    }

    fn wait_while(&mut self, count: usize, mut go: impl FnMut() -> bool) {
        let deadline = Instant::now() + MAX_WAIT;
        while self.count < count && go() {
            assert!(Instant::now() < deadline, "only {} of {count} accesses to files", self.count);
            self.receive(true);
        }
    }
}

#[cfg(target_os = "linux")]
impl FileEvents {
    /// Counts the accesses to every file in these folders.
    pub fn of<P: AsRef<Path>>(folders: &[P], access: Access) -> FileEvents {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        let inotify = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        let kinds = match access {
            // The system merges events that are the same as the one before, so ends are watched with beginnings.
            Access::Open => WatchFlags::OPEN | WatchFlags::CLOSE,
            Access::Change => {
                WatchFlags::CREATE | WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::DELETE
            }
        };
        for folder in folders {
            add_watch(&inotify, folder.as_ref(), kinds).unwrap();
        }
        FileEvents { inotify, name: None, count: 0 }
    }

    /// Counts the accesses to one file, also after it was replaced.
    pub fn of_file(path: &Path, access: Access) -> FileEvents {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        FileEvents { name: Some(name), ..FileEvents::of(&[path.parent().unwrap()], access) }
    }

    /// Counts what has happened, after a moment if nothing has.
    fn receive(&mut self, wait: bool) {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        if wait {
            let moment = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
            let _ = poll(&mut [PollFd::new(&self.inotify, PollFlags::IN)], Some(&moment));
        }
        use rustix::fs::inotify::ReadFlags;
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut events = rustix::fs::inotify::Reader::new(&self.inotify, &mut buffer);
        while let Ok(event) = events.next() {
            let name = event.file_name().map(|name| name.to_string_lossy());
            let is_named = self.name.is_none() || self.name.as_deref() == name.as_deref();
            self.count += usize::from(is_named && !event.events().contains(ReadFlags::CLOSE_NOWRITE));
        }
    }
}

/// Other systems do not report it. There time has to pass for it.
#[cfg(not(target_os = "linux"))]
impl FileEvents {
    pub fn of<P: AsRef<Path>>(_: &[P], _: Access) -> FileEvents {
        FileEvents { count: 0 }
    }

    pub fn of_file(_: &Path, _: Access) -> FileEvents {
        FileEvents { count: 0 }
    }

    fn receive(&mut self, wait: bool) {
        if wait {
            std::thread::sleep(std::time::Duration::from_millis(50));
            self.count += 1;
        }
    }
}
