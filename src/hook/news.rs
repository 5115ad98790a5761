//! Guidance that the agent has not read, for the turn that is running: it need not wait for the turn's end.

use super::HookCall;
use crate::claude::hook::answer::HookOutput;
use crate::core::event::EventKind;
use crate::core::guidance::merge::GuidanceLists;
use crate::core::prompt;
use crate::core::record::{ArmedLoop, LoopState};
use crate::scan::briefing::{self, BriefingContext};
use crate::store::state::{self, Document, Locked};
use crate::store::user::{armed, given_guidance};
use crate::store::{Project, World, config, events};
use anyhow::Result;

/// Answers a batch of tools of the main agent. What fails here is told at the end of the turn.
pub fn after_tools(call: &HookCall) -> HookOutput {
    let HookCall { world, project, session, .. } = *call;
    // The prompts of a runner's agent have its guidance.
    let news = if world.run_id.is_none() { take(world, project, session) } else { Ok(None) };
    let context = news.ok().flatten().map(|text| ("PostToolBatch", text));
    HookOutput { context, ..HookOutput::silent() }
}

/// Returns what the agent of the session's running loop has not read, and counts it as delivered. The first to ask is
/// told, so the agent reads it once.
pub fn take(world: &World, project: &Project, session: &str) -> Result<Option<String>> {
    if !armed::exists(world, project, session)? {
        return Ok(None);
    }
    // Most often there is nothing new: then nothing is locked or written.
    let Some(mut seen) = state::peek(project)? else { return Ok(None) };
    if in_document(world, project, session, &mut seen)?.is_none() {
        return Ok(None);
    }
    let mut state = Locked::open(project, world.now)?;
    let Some(news) = in_document(world, project, session, &mut state.document)? else { return Ok(None) };
    state.save()?;
    given_guidance::prune(world, project, &state.document);
    events::note(world, &news.run, &news.events);
    Ok(Some(prompt::news(&news.lists, world.now)))
}

struct News {
    run: ArmedLoop,
    lists: GuidanceLists,
    events: Vec<EventKind>,
}

fn in_document(
    world: &World,
    project: &Project,
    session: &str,
    document: &mut Document,
) -> Result<Option<News>> {
    let run = armed::load_armed(world, project, session, document)?;
    let Some(run) = run.filter(|run| run.state == LoopState::Running) else { return Ok(None) };
    let resolved = config::load_for(world, project, &run);
    let context = BriefingContext { world, project, session, run: &run, resolved: &resolved, told: true };
    let news = briefing::news(&context, document)?;
    Ok(news.map(|(lists, events)| News { run, lists, events }))
}
