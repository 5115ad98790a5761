//! A Stop within an iteration of the runner: the runner decides about the loop; here the agent is only held to
//! what every iteration owes.

use super::Call;
use crate::claude::answer::Answer;
use crate::claude::input::Event;
use crate::core::signal::{self, Promise};
use crate::store::{config, driven};

/// An agent that cannot mend it must come to an end all the same.
const MOST_HELD: u64 = 3;

pub fn stop(call: &Call) -> Answer {
    let Call { world, project, session, input } = *call;
    let Event::Stop { message, .. } = &input.event else { return Answer::silent() };
    let promise = config::load(world, project, &Default::default()).settings().promise;
    let word = message.as_deref().and_then(|message| signal::promise(message, &promise));
    // Who is blocked or asks has nothing to finish.
    if matches!(word, Some(Promise::Blocked(_) | Promise::Decide(_))) {
        return Answer::silent();
    }
    let problems = driven::runner_check(world, project);
    if problems.is_empty() || driven::times_held(world, session) >= MOST_HELD {
        return Answer::silent();
    }
    let told = format!("Before this iteration may end:\n- {}", problems.join("\n- "));
    Answer { block: Some(told), message: Some(format!("Ralph: {}", problems.join("; "))), context: None }
}
