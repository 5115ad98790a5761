//! The waker: a second, asynchronous Stop hook that continues a loop after it stopped for the user.
//!
//! When a prompt or command of the user's is queued, the Stop hook allows that one stop. Most of them lead to a turn,
//! whose own Stop continues the loop. A command without a turn, such as `/compact`, would leave the loop waiting for
//! ever. So this hook watches the transcript and, once it is quiet, wakes the agent: with `asyncRewake` the client does
//! that for exit code 2 and the text on stderr.
//!
//! A loop that ended with a question is woken by the user's answer from `notify.answers`, if that is configured.

use crate::claude::hook::input;
use crate::claude::transcript;
use crate::cli::loops::answer;
use crate::core::decide::Note;
use crate::core::prompt;
use crate::core::record::{ArmedLoop, LoopState, WaitingFor};
use crate::core::text::clean;
use crate::core::time::runtime::Event;
use crate::notify::answers::Topic;
use crate::scan::briefing::{self, BriefingContext};
use crate::store::user::{armed, handoff, reply};
use crate::store::world::{self, Instant, World};
use crate::store::{Project, config, state};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

const WAKE: u8 = 2;
/// The name of the note for the user about an answer from elsewhere.
pub(super) const ANSWERED: &str = "answered";
/// As long as the client lets this hook run, see `hooks/steering.json`.
const MAX_ANSWER_WAIT: Duration = Duration::from_secs(24 * 3600);
const POLL: Duration = Duration::from_millis(200);
/// A queue that is not empty by then was misread.
const QUEUE_DEADLINE: Duration = Duration::from_secs(10);
/// The session counts as idle after this time without a change.
const IDLE_AFTER: Duration = Duration::from_secs(2);
/// The longest time a dialogue of the user's may take.
const DEADLINE: Duration = Duration::from_secs(3600);

pub fn main() -> ExitCode {
    // If anything fails here, the session behaves as if there were no waker.
    std::panic::set_hook(Box::new(|_| std::process::exit(0)));
    match watch() {
        Some(text) => {
            let _ = std::io::stderr().lock().write_all(text.as_bytes());
            ExitCode::from(WAKE)
        }
        None => ExitCode::SUCCESS,
    }
}

/// Returns the prompt that wakes the agent, or nothing if it need not be woken.
fn watch() -> Option<String> {
    let bytes = super::read_stdin().ok()?;
    // Outside the terminal's interface the client waits for this hook, and there is no queue.
    world::text("CLAUDE_CODE_ENTRYPOINT").filter(|entry| entry == "cli")?;
    let input = input::parse(&bytes, "Stop").ok()?;
    let session = input.session_id.as_deref()?;
    let world = World::of_hook().ok()?;
    let project = Project::find(&world, input.cwd.as_deref());
    if !armed::exists(&world, &project, session).ok()? {
        return answered(&world, &project, session);
    }
    let transcript = input.transcript.as_deref()?;
    let began = Instant::now();
    let Some(mut run) = stopped_for_user(&world, &project, session, began) else {
        return answered(&world, &project, session);
    };
    let mut quiet_since = Instant::now();
    while began.elapsed() < DEADLINE {
        std::thread::sleep(POLL);
        let current = running_loop(&world, &project, session)?;
        if current.session.waiting != run.session.waiting {
            return None;
        }
        match activity(transcript, &mut run) {
            Activity::Turn => return None,
            Activity::Busy => quiet_since = Instant::now(),
            Activity::Quiet => {}
        }
        let drained = run.session.transcript.queue.is_empty() || began.elapsed() > QUEUE_DEADLINE;
        if drained && quiet_since.elapsed() >= IDLE_AFTER {
            let document = state::peek(&project).ok()??;
            let resolved = &config::load_for(&world, &project, &current);
            let (world, project, run) = (&world, &project, &current);
            let context = BriefingContext { world, project, session, run, resolved, told: true };
            return Some(prompt::continuation(
                &current,
                &Note { earlier_advice: current.pending.advice.clone(), ..Note::default() },
                &briefing::stored(&context, &document).ok()?,
                &resolved.settings(),
                world.now,
            ));
        }
    }
    None
}

/// Waits for the user's answer from elsewhere to the question with which the loop of this session ended, and resumes the
/// loop with it. Without such a question this is one look.
fn answered(world: &World, project: &Project, session: &str) -> Option<String> {
    let open = reply::load(world, project, session)?;
    // Later turns of this session bring more of us.
    let _watch = reply::watch(world, project, session)?;
    let document = state::peek(project).ok()??;
    let loops = armed::load_started(world, project, &document).loops;
    let (_, run) = loops.into_iter().find(|(id, run)| id == session && run.run_id == open.run_id)?;
    let settings = config::load_for(world, project, &run).notify();
    let mut topic = Topic::of(&settings, &open)?;
    let limit = Duration::from_millis(u64::try_from(settings.answer_ms).unwrap_or(0)).min(MAX_ANSWER_WAIT);
    let began = Instant::now();
    while began.elapsed() < limit {
        // It may be answered or replaced in the session or in a terminal.
        let is_open = reply::load(world, project, session).as_ref() == Some(&open);
        let question = answer::of_session(world, project, session).ok()??;
        if !is_open || !question.answer.is_empty() {
            return None;
        }
        if let Ok(Some(text)) = topic.look()
            && reply::take(world, project, session, &open)
        {
            return resumed(&world.later(), project, session, &text, topic.host());
        }
        let pause = Instant::now() + topic.pause();
        while Instant::now() < pause && reply::load(world, project, session).is_some() {
            std::thread::sleep(POLL);
        }
    }
    None
}

/// Takes the answer and returns the prompt that continues the loop. The user is told where it came from.
fn resumed(world: &World, project: &Project, session: &str, text: &str, host: &str) -> Option<String> {
    let answered = answer::in_session(world, project, session, text, false, host);
    let told = match &answered {
        Ok(_) => format!("answer from {host}: \"{}\"", clean::excerpt(text, 160)),
        Err(failure) => format!("the answer from {host} was not taken: {failure}"),
    };
    let _ = handoff::leave(world, session, ANSWERED, &told);
    let for_agent = answered.ok()?.agent?;
    Some(format!(
        "The user has answered your question through {host}, and the loop continues.\n\n{for_agent}"
    ))
}

/// Waits for the Stop hook's decision. Returns the loop if it stopped for the user.
fn stopped_for_user(world: &World, project: &Project, session: &str, began: Instant) -> Option<ArmedLoop> {
    loop {
        std::thread::sleep(POLL);
        let run = running_loop(world, project, session)?;
        if matches!(run.session.waiting.as_ref().map(|waiting| &waiting.what), Some(WaitingFor::User(_))) {
            return Some(run);
        }
        let decided = run.last_hook_timestamp >= world.now.seconds() - 0.1;
        // The hook may be running the check commands.
        if decided || began.elapsed() > DEADLINE {
            return None;
        }
    }
}

fn running_loop(world: &World, project: &Project, session: &str) -> Option<ArmedLoop> {
    let document = state::peek(project).ok()??;
    armed::load_armed(world, project, session, &document).ok()?.filter(|run| run.state == LoopState::Running)
}

enum Activity {
    Quiet,
    Busy,
    /// Something was sent to the model, so another Stop will come.
    Turn,
}

fn activity(path: &Path, run: &mut ArmedLoop) -> Activity {
    let before = run.session.transcript.offset;
    if path.symlink_metadata().is_err() {
        // The agent took it along into another checkout, so it is at work.
        return Activity::Turn;
    }
    let Some(gained) = transcript::read(path, run) else { return Activity::Quiet };
    let sent = |event: &Event| matches!(event, Event::Prompt | Event::Sent | Event::Result(_));
    let turn = gained.evidence.iter().any(|evidence| sent(&evidence.event));
    run.session.transcript = gained.reading;
    if turn && gained.interrupted_at.is_none() {
        return Activity::Turn;
    }
    if run.session.transcript.offset == before { Activity::Quiet } else { Activity::Busy }
}
