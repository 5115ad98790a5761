//! A Stop within an iteration of the runner: the runner decides about the loop; the hook only checks that the
//! iteration leaves its work in order.

use super::HookCall;
use crate::claude::hook::answer::HookOutput;
use crate::claude::hook::input::HookEvent;
use crate::core::decide::completion;
use crate::store::config;
use crate::store::runner::task_list_guard;
use anyhow::Result;

/// An agent that cannot fix the problems must come to an end all the same.
const MAX_BLOCKS: u64 = 3;

pub fn stop(call: &HookCall) -> Result<HookOutput> {
    let HookCall { world, project, session, input, .. } = *call;
    let HookEvent::Stop { message, .. } = &input.event else { return Ok(HookOutput::silent()) };
    let settings = config::load(world, project).settings();
    // An agent that is blocked or asks a question has nothing to finish.
    if message.as_deref().is_some_and(|message| completion::asks_for_person(message, &settings)) {
        return Ok(HookOutput::silent());
    }
    let problems = task_list_guard::runner_check(world, project)?;
    if problems.is_empty() || task_list_guard::count_block(world, session) >= MAX_BLOCKS {
        return Ok(HookOutput::silent());
    }
    let told = format!("Before this iteration may end:\n- {}", problems.join("\n- "));
    let answer = HookOutput::continue_turn(told, None, super::takes_stop_context());
    Ok(answer.add_line(&format!("Ralph: {}", problems.join("; "))))
}
