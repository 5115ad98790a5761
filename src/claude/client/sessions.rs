//! What Claude Code writes about its sessions while they are open: `sessions/PID.json` in its own folder. A client that
//! was killed leaves its file behind, so a file counts by its process.

use crate::core::record::ClientStatus;
use crate::store::file;
use crate::store::file::walk::entries;
use crate::store::process::pid;
use crate::store::world::World;
use serde::Deserialize;

const MAX_FILE_BYTES: u64 = 64 << 10;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    pid: u32,
    session_id: String,
    /// The start time of the process.
    proc_start: Option<String>,
    /// The machine and the namespace of the number.
    pid_domain: Option<String>,
    status: Option<String>,
    /// `cli` with the terminal's interface.
    entrypoint: Option<String>,
    waiting_for: Option<String>,
    /// The name of a session in the background, by which `claude attach` opens it.
    job_id: Option<String>,
}

/// Returns what the client says about a session. Older clients write nothing, and then it is unknown.
pub fn status(world: &World, session: &str) -> ClientStatus {
    // A session that was resumed has the file of its killed client beside the one of its new one.
    let found = files_of(world, session).map(|entry| entry.status()).max_by_key(|status| match status {
        ClientStatus::Gone => 0,
        ClientStatus::Unknown => 1,
        _ => 2,
    });
    found.unwrap_or_default()
}

/// Returns the command that opens a session in the background, if it runs there.
pub fn attach_command(world: &World, session: &str) -> Option<String> {
    let is_name = |id: &String| !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let open = files_of(world, session).filter(|entry| entry.is_visible() && entry.is_alive());
    let id = open.filter_map(|entry| entry.job_id).find(is_name)?;
    Some(format!("claude attach {id}"))
}

fn files_of(world: &World, session: &str) -> impl Iterator<Item = Entry> {
    let folder = world.claude_config.as_ref().map(|folder| folder.join("sessions"));
    let files = folder.map(|folder| entries(&folder)).unwrap_or_default().into_iter();
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let read = files.filter_map(|path| file::read_json::<Entry>(&path, MAX_FILE_BYTES));
    read.filter(move |entry| entry.session_id == session)
}

impl Entry {
    fn status(self) -> ClientStatus {
        if !self.is_visible() {
            return ClientStatus::Unknown;
        }
        if !self.is_alive() {
            return ClientStatus::Gone;
        }
        // With `-p` the client waits for our hooks, and calls that busy too.
        let is_printed = self.entrypoint.is_some_and(|entrypoint| entrypoint.starts_with("sdk"));
        match (self.status.as_deref(), self.waiting_for) {
            (Some("busy"), _) if is_printed => ClientStatus::Open,
            (Some("busy"), _) => ClientStatus::Busy,
            (Some("idle"), _) => ClientStatus::Idle,
            (Some("waiting"), what) => ClientStatus::Asking(what.unwrap_or_else(|| "answer".into())),
            _ => ClientStatus::Open,
        }
    }

    /// Returns whether the process can be looked for from here; that of a client in a container cannot.
    fn is_visible(&self) -> bool {
        match (&self.pid_domain, pid::namespace()) {
            (Some(domain), Some(namespace)) => domain.ends_with(&namespace),
            _ => true,
        }
    }

    fn is_alive(&self) -> bool {
        match &self.proc_start {
            // Elsewhere the start time is written in another form than ours.
            Some(start) if cfg!(target_os = "linux") => pid::start_time(self.pid).as_ref() == Some(start),
            _ => pid::is_alive(self.pid),
        }
    }
}
