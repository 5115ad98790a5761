//! Work that continues in the background when a turn ends: how long the loop waits for it.
//!
//! An agent's work ends. A command may be a server or a monitor that never does, so each is waited for once, for a limited
//! time.

use super::turn::Task;
use crate::core::record::{BackgroundCommand, BackgroundWait, StoredLoop};
use crate::core::text::clean;
use crate::core::time::Stamp;

/// More commands are waited for, but not remembered.
const MAX_BACKGROUND_COMMANDS: usize = 50;

/// Returns what the loop waits for. If it waits for nothing, the second value names the commands without which it
/// continues from now on.
pub fn wait(
    run: &mut StoredLoop,
    tasks: &[Task],
    wait_ms: i64,
    now: Stamp,
) -> (Option<BackgroundWait>, Vec<String>) {
    let commands = || tasks.iter().filter(|task| !task.is_agent);
    let noticed = &mut run.session.background;
    noticed.retain(|known| commands().any(|task| task.id == known.id));
    for task in commands() {
        if noticed.len() < MAX_BACKGROUND_COMMANDS && !noticed.iter().any(|known| known.id == task.id) {
            noticed.push(BackgroundCommand { id: task.id.clone(), since: now, told: false });
        }
    }
    if let Some(agent) = tasks.iter().find(|task| task.is_agent) {
        return (Some(BackgroundWait { what: agent.name.clone(), until: None }), Vec::new());
    }
    // A clock that was set back must not make the wait longer.
    let limit = |known: &BackgroundCommand| known.since.min(now).plus_ms(wait_ms);
    let limited = noticed.iter().map(|known| (limit(known), known)).filter(|(until, _)| *until > now);
    if let Some((until, last)) = limited.max_by_key(|(until, _)| *until) {
        let name = tasks.iter().find(|task| task.id == last.id).map(|task| task.name.clone());
        return (Some(BackgroundWait { what: name.unwrap_or_default(), until: Some(until) }), Vec::new());
    }
    (None, take_news(run, tasks))
}

/// Returns the names of the commands that the agent does not know to be left behind; from now on it does.
pub fn take_news(run: &mut StoredLoop, tasks: &[Task]) -> Vec<String> {
    let mut news = Vec::new();
    for known in run.session.background.iter_mut().filter(|known| !known.told) {
        known.told = true;
        news.extend(tasks.iter().find(|task| task.id == known.id).map(|task| task.name.clone()));
    }
    news
}

/// Returns what the agent is told of the commands that still run.
pub fn advice(names: &[String]) -> String {
    let names: Vec<String> = names.iter().take(10).map(|name| clean::excerpt(name, 80)).collect();
    format!(
        "Still running in the background: {}. The loop no longer waits for this: continue without the result, or stop the command.",
        names.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT_MS: i64 = 600_000;

    fn shell(id: &str) -> Task {
        Task { id: id.into(), name: format!("run {id}"), is_agent: false }
    }

    fn at(seconds: i64) -> Stamp {
        Stamp(seconds * 1000)
    }

    #[test]
    fn a_command_is_waited_for_once_and_then_named_once() {
        let run = &mut StoredLoop::default();
        let server = [shell("a")];
        let waits = |until| (Some(BackgroundWait { what: "run a".into(), until: Some(at(until)) }), vec![]);
        assert_eq!(wait(run, &server, WAIT_MS, at(1000)), waits(1600));
        assert_eq!(wait(run, &server, WAIT_MS, at(1599)), waits(1600));
        assert_eq!(wait(run, &server, WAIT_MS, at(1600)), (None, vec!["run a".to_owned()]));
        assert_eq!(wait(run, &server, WAIT_MS, at(1700)), (None, vec![]));
        assert_eq!(wait(run, &[], WAIT_MS, at(1800)), (None, vec![]));
        assert_eq!(wait(run, &server, WAIT_MS, at(2000)), waits(2600), "started again, it is another one");
    }

    #[test]
    fn a_new_command_is_waited_for_beside_one_that_never_ends() {
        let run = &mut StoredLoop::default();
        wait(run, &[shell("a")], WAIT_MS, at(1000));
        let (awaited, news) = wait(run, &[shell("a"), shell("b")], WAIT_MS, at(2000));
        assert_eq!(awaited, Some(BackgroundWait { what: "run b".into(), until: Some(at(2600)) }));
        assert!(news.is_empty());
        let (awaited, news) = wait(run, &[shell("a"), shell("b")], WAIT_MS, at(2600));
        assert_eq!((awaited, news.len()), (None, 2));
    }

    #[test]
    fn an_agent_is_waited_for_without_a_limit() {
        let run = &mut StoredLoop::default();
        let agent = Task { is_agent: true, ..shell("x") };
        for seconds in [1000, 9000] {
            let (awaited, _) = wait(run, &[shell("a"), agent.clone()], WAIT_MS, at(seconds));
            assert_eq!(awaited, Some(BackgroundWait { what: "run x".into(), until: None }));
        }
        assert_eq!(wait(run, &[shell("a")], WAIT_MS, at(9001)).1, ["run a"], "its time passed meanwhile");
    }

    #[test]
    fn zero_waits_for_no_command_and_a_clock_set_back_does_not_lengthen_the_wait() {
        let run = &mut StoredLoop::default();
        assert_eq!(wait(run, &[shell("a")], 0, at(1000)), (None, vec!["run a".to_owned()]));
        let run = &mut StoredLoop::default();
        wait(run, &[shell("a")], WAIT_MS, at(9000));
        let (awaited, _) = wait(run, &[shell("a")], WAIT_MS, at(1000));
        assert_eq!(awaited.and_then(|awaited| awaited.until), Some(at(1600)));
    }

    #[test]
    fn any_number_of_commands_is_bounded_in_the_record() {
        let run = &mut StoredLoop::default();
        let many: Vec<Task> = (0..500).map(|id| shell(&id.to_string())).collect();
        wait(run, &many, WAIT_MS, at(1000));
        assert_eq!(run.session.background.len(), MAX_BACKGROUND_COMMANDS);
        let (awaited, news) = wait(run, &many, WAIT_MS, at(1600));
        assert_eq!((awaited, news.len()), (None, MAX_BACKGROUND_COMMANDS));
    }
}
