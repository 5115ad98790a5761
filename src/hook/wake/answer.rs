//! The user's answer from `notify.answers` to the question with which the loop of this session ended.

use super::{POLL, WOKEN, WakeContext};
use crate::cli::loops::answer;
use crate::core::text::clean;
use crate::notify::answers::Topic;
use crate::store::user::{armed, handoff, reply};
use crate::store::world::{self, Instant, World};
use crate::store::{Project, config, state};
use std::time::Duration;

/// As long as the client lets this hook run, see `hooks/steering.json`.
const MAX_WAIT: Duration = Duration::from_secs(24 * 3600);

/// Waits for the answer and resumes the loop with it. Without an open question this is one look.
pub(super) fn wait_for_answer(watch: &WakeContext) -> Option<String> {
    let WakeContext { world, project, session, .. } = *watch;
    let open = reply::load(world, project, session)?;
    // Later turns of this session bring more of us.
    let _watch = reply::watch(world, project, session)?;
    let read = || state::peek(project).map(Option::unwrap_or_default);
    let (_, armed::Loaded { loops, .. }) = armed::read_started(world, project, read).ok()?;
    let (_, run) = loops.into_iter().find(|(id, run)| id == session && run.run_id == open.run_id)?;
    let settings = config::load_for(world, project, &run).notify();
    let mut topic = Topic::of(&settings, &open)?;
    let limit = world::milliseconds(settings.answer_ms).min(MAX_WAIT);
    let began = Instant::now();
    while began.elapsed() < limit {
        // It may be answered or replaced in the session or in a terminal.
        let is_open = reply::load(world, project, session).as_ref() == Some(&open);
        let question = answer::of_session(world, project, session).ok()??;
        if !is_open || !question.answer.is_empty() {
            return None;
        }
        if let Ok(Some(text)) = topic.poll()
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
        Err(failure) => format!("the answer from {host} was not used: {failure}"),
    };
    let _ = handoff::save(world, session, WOKEN, &told);
    let for_agent = answered.ok()?.agent?;
    Some(format!(
        "The user has answered your question through {host}, and the loop continues.\n\n{for_agent}"
    ))
}
