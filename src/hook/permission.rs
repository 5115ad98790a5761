//! The client asks for a permission while a loop runs. The user has time to answer in its dialog. Then the call is denied, with
//! a reason that the agent can act on, so that no prompt blocks a loop overnight.
//!
//! The client does not end this hook when the user answers, and ignores what it says afterwards. So the hook watches the
//! client's own file about the session, and the loop. Killed at any moment, it leaves at most a note of what it waited for,
//! which views check against the client and the next Stop removes.

use super::HookCall;
use crate::claude::client::sessions;
use crate::claude::hook::answer::{HookOutput, PermissionAnswer as Decision};
use crate::core::decide::permission::{self, MAX_DENIALS, Reason, ToolCall};
use crate::core::event::notice::Notice;
use crate::core::event::{self, EventKind, Permission, PermissionDecision, WaitEvent};
use crate::core::record::{ArmedLoop, BackgroundWait, ClientStatus, LoopState, Waiting, WaitingFor};
use crate::core::settings::Resolved;
use crate::core::time;
use crate::store::process::{notify, pid};
use crate::store::state::{self, Locked, stop as stops};
use crate::store::user::armed;
use crate::store::world::{self, Instant};
use crate::store::{World, config, events};
use anyhow::Result;
use serde_json::Value;
use std::time::Duration;

const POLL: Duration = Duration::from_millis(500);
/// The user is told elsewhere once a prompt is open for so long; the client's own notification takes as long.
const NOTIFY_AFTER: Duration = Duration::from_secs(6);
/// The dialog of a subagent that is not open by then opens only after this hook has answered.
const DIALOG_OPENS_WITHIN: Duration = Duration::from_secs(3);

/// One prompt in a session with a running loop.
struct Prompt<'a> {
    call: &'a HookCall<'a>,
    run_id: &'a str,
    tool: ToolCall,
    resolved: &'a Resolved,
    wait_ms: i64,
    by_subagent: bool,
}

/// How the wait for the user ended.
enum End {
    NoAnswer,
    Answered,
    /// The loop or the client is gone: the dialog is the user's alone.
    Left,
}

/// Allows what a rule of the user's allows, else waits for the user and then denies.
pub fn requested(call: &HookCall, tool: &str, input: &Value, by_subagent: bool) -> Result<HookOutput> {
    let HookCall { world, project, session, .. } = *call;
    let Ok(Some(document)) = state::peek(project) else { return Ok(HookOutput::silent()) };
    let own = armed::load_armed(world, project, session, &document)?;
    let Some(run) = own.filter(|run| run.state == LoopState::Running) else {
        return Ok(HookOutput::silent());
    };
    let tool = ToolCall::new(tool, input);
    let resolved = &config::load_for(world, project, &run);
    let settings = resolved.settings();
    if let Some(rule) = tool.allowed_by(&settings.allowed_tools) {
        let (decision, call, rule) = (PermissionDecision::Allowed, tool.shown(), rule.to_owned());
        let allowed = Permission { call, decision, rule, ..Permission::default() };
        let failed = events::note(world, &run, &[EventKind::Permission(allowed)]);
        return Ok(HookOutput::permission(Decision::Allow).with_notes(&failed));
    }
    // Elsewhere than in the terminal's interface another program asks, or the client denies at once.
    let wait_ms = settings.permission_wait_ms;
    if wait_ms == 0 || !super::is_interactive() {
        return Ok(HookOutput::silent());
    }
    Prompt { call, run_id: &run.run_id, tool, resolved, wait_ms, by_subagent }.ask()
}

impl Prompt<'_> {
    fn ask(&self) -> Result<HookOutput> {
        let parent = pid::parent();
        if self.by_subagent && self.is_hidden(parent) {
            return Ok(self.deny(None, Reason::Subagent));
        }
        // The dialog opens before this hook starts; the user may answer it while the wait is being noted.
        let was_open = self.is_open();
        let noted = self.note_wait()?;
        let end = self.wait(noted.as_ref(), parent, was_open);
        if !matches!(end, End::NoAnswer) {
            if let Some(run) = self.finish_wait(noted.as_ref(), |_| ())?
                && matches!(end, End::Answered)
            {
                events::note(
                    &self.now(),
                    &run,
                    &[self.event(PermissionDecision::Answered, String::new(), 0)],
                );
            }
            return Ok(HookOutput::silent());
        }
        Ok(self.deny(noted.as_ref(), Reason::NoAnswer(self.wait_ms)))
    }

    fn now(&self) -> World {
        self.call.world.later()
    }

    /// Returns whether the client shows no dialog for the call of a subagent, as far as it says what it shows.
    fn is_hidden(&self, parent: Option<u32>) -> bool {
        let began = Instant::now();
        loop {
            match sessions::status(self.call.world, self.call.session) {
                ClientStatus::Unknown | ClientStatus::Gone | ClientStatus::Asking(_) => return false,
                _ if began.elapsed() >= DIALOG_OPENS_WITHIN => return true,
                _ if pid::parent() != parent => return false,
                _ => std::thread::sleep(POLL),
            }
        }
    }

    /// Notes in the state what the loop waits for. The dialogs of the main agent come one after the other; one of a subagent
    /// must not hide them.
    fn note_wait(&self) -> Result<Option<Waiting>> {
        let HookCall { project, .. } = *self.call;
        let world = &self.now();
        let mut state = Locked::open(project, world.now)?;
        let Some(mut run) = self.own_loop(&state)? else { return Ok(None) };
        let is_open = |waiting: &Waiting| {
            waiting.what.is_dialog() && waiting.what.until().is_some_and(|until| until > world.now)
        };
        if self.by_subagent && run.session.waiting.as_ref().is_some_and(is_open) {
            return Ok(None);
        }
        let until = Some(world.now.plus_ms(self.wait_ms));
        let awaited = BackgroundWait { what: self.tool.shown(), until };
        let what = match self.tool.question() {
            Some(_) => WaitingFor::Question(awaited),
            None => WaitingFor::Permission(awaited),
        };
        let event = EventKind::Waiting(WaitEvent::of(&what));
        let waiting = Waiting { what, since: world.now };
        run.session.waiting = Some(waiting.clone());
        state.document.set_loop(self.call.session, &run)?;
        state.save()?;
        drop(state);
        events::note(world, &run, &[event]);
        Ok(Some(waiting))
    }

    fn is_open(&self) -> bool {
        matches!(sessions::status(self.call.world, self.call.session), ClientStatus::Asking(_))
    }

    fn wait(&self, noted: Option<&Waiting>, parent: Option<u32>, mut was_open: bool) -> End {
        let limit = world::milliseconds(self.wait_ms);
        let began = Instant::now();
        let mut is_told = false;
        loop {
            match sessions::status(self.call.world, self.call.session) {
                ClientStatus::Asking(_) => was_open = true,
                ClientStatus::Gone => return End::Left,
                ClientStatus::Unknown => {}
                _ if was_open => return End::Answered,
                _ => {}
            }
            if pid::parent() != parent || stops::kill_switch(self.call.project) {
                return End::Left;
            }
            match self.peek() {
                None => return End::Left,
                // A later prompt, or the end of the turn, took its place.
                Some(waiting) if !self.by_subagent && waiting.as_ref() != noted => return End::Answered,
                Some(_) => {}
            }
            let is_over = began.elapsed() >= limit;
            if !is_told && (is_over || began.elapsed() >= NOTIFY_AFTER) {
                is_told = true;
                self.notify(&self.request());
            }
            if is_over {
                return End::NoAnswer;
            }
            std::thread::sleep(POLL);
        }
    }

    /// Returns what the loop waits for, while it runs.
    fn peek(&self) -> Option<Option<Waiting>> {
        let HookCall { world, project, session, .. } = *self.call;
        let document = state::peek(project).ok()??;
        let run = armed::load_armed(world, project, session, &document).ok()??;
        (run.state == LoopState::Running && run.run_id == self.run_id).then(|| run.session.waiting.clone())
    }

    fn own_loop(&self, state: &Locked) -> Result<Option<ArmedLoop>> {
        let HookCall { world, project, session, .. } = *self.call;
        let run = armed::load_armed(world, project, session, &state.document)?;
        Ok(run.filter(|run| run.state == LoopState::Running && run.run_id == self.run_id))
    }

    /// Removes the note of the wait and changes the loop, if it still runs. Returns it.
    fn finish_wait(
        &self,
        noted: Option<&Waiting>,
        change: impl FnOnce(&mut ArmedLoop),
    ) -> Result<Option<ArmedLoop>> {
        let mut state = Locked::open(self.call.project, self.now().now)?;
        let Some(mut run) = self.own_loop(&state)? else { return Ok(None) };
        let before = run.clone();
        if noted.is_some() && run.session.waiting.as_ref() == noted {
            run.session.waiting = None;
        }
        change(&mut run);
        if run != before {
            state.document.set_loop(self.call.session, &run)?;
            state.save()?;
        }
        Ok(Some(run))
    }

    /// Denies the call. A state that cannot be saved must not keep the prompt open.
    fn deny(&self, noted: Option<&Waiting>, reason: Reason) -> HookOutput {
        let mut count = 1;
        let settled = self.finish_wait(noted, |run| match self.tool.question() {
            Some(question) => run.pending.question = Some(question.to_owned()),
            None => count = permission::count(run, &self.tool),
        });
        let mut notes = Vec::new();
        match settled {
            Ok(None) => return HookOutput::silent(),
            Ok(Some(run)) => {
                let event = self.event(PermissionDecision::Denied, reason.words(), count);
                notes.extend(events::note(&self.now(), &run, &[event]));
            }
            Err(error) => notes.push(format!("could not note the denial: {error:#}")),
        }
        let hint = permission::allow_hint(&[self.tool.rule()]);
        if count == MAX_DENIALS {
            let denied = format!("denied {count} times: {}", self.tool.shown());
            self.notify(&format!("{denied}; {hint}"));
        }
        let told = match self.tool.question() {
            Some(_) => format!("the agent's question was not answered ({})", reason.words()),
            None => format!("denied {}: {}; {hint}", self.tool.shown(), reason.words()),
        };
        notes.insert(0, told);
        let denial = permission::denial(&self.tool, reason, count);
        HookOutput::permission(Decision::Deny(denial)).with_notes(&notes)
    }

    fn event(&self, decision: PermissionDecision, reason: String, denials: u64) -> EventKind {
        let (call, rule) = (event::text(&self.tool.shown()), self.tool.rule().unwrap_or_default());
        EventKind::Permission(Permission { call, decision, rule, reason, denials })
    }

    /// Returns what the user is asked, and until when.
    fn request(&self) -> String {
        let limit = time::span(self.wait_ms);
        match self.tool.question() {
            Some(question) => format!(
                "{question}\n\nAnswer it in Claude Code within {limit}, or it ends the loop as a question"
            ),
            None => {
                format!("{} needs your permission; denied after {limit} without an answer", self.tool.shown())
            }
        }
    }

    fn notify(&self, words: &str) {
        let HookCall { project, session, .. } = *self.call;
        let world = &self.now();
        let Ok(Some(document)) = state::peek(project) else { return };
        let Ok(Some(run)) = armed::load_armed(world, project, session, &document) else { return };
        let notice = Notice::permission(&run, &project.root.to_string_lossy(), words, world.now);
        let notice = notice.in_session(session);
        notify::send(project, &notice, &self.resolved.notify());
    }
}
