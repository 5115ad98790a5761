//! What a claim of completion has to pass: commands of the user's, or of a project the user trusts.

use super::command::{self, Run};
use crate::core::settings::Resolved;
use std::path::Path;
use std::time::{Duration, Instant};

const KEY: &str = "completion.verify";
/// All commands together. The client ends the Stop hook after an hour (`hooks/hooks.json`) and takes no answer
/// from it then.
pub const BUDGET: Duration = Duration::from_secs(3500);

/// The commands that may run, in order, and their time.
#[derive(Clone, Debug, PartialEq)]
pub struct Verification {
    pub commands: Vec<String>,
    /// Commands of the project's file that the user has not trusted: not run, so they prove nothing. A warning
    /// in [`Resolved::warnings`] says so.
    pub withheld: Vec<String>,
    /// What each command may take.
    pub limit: Duration,
}

/// One command and what came of it.
#[derive(Clone, Debug)]
pub struct Checked {
    pub command: String,
    pub run: Run,
}

impl Verification {
    pub fn of(resolved: &Resolved) -> Verification {
        let seconds = resolved.number("completion.verify_timeout_seconds");
        let withheld = resolved.withheld.iter().filter(|row| row.key.name == KEY);
        Verification {
            commands: resolved.row(KEY).map(|row| row.key.commands(&row.value)).unwrap_or_default(),
            withheld: withheld.flat_map(|row| row.key.commands(&row.value)).collect(),
            limit: Duration::try_from_secs_f64(seconds).unwrap_or(BUDGET).min(BUDGET),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Runs them in order, up to the first that is not green: only the last of the answer can be red.
    pub fn run(&self, dir: &Path, cancelled: &dyn Fn() -> bool) -> Vec<Checked> {
        self.run_within(dir, BUDGET, cancelled)
    }

    fn run_within(&self, dir: &Path, budget: Duration, cancelled: &dyn Fn() -> bool) -> Vec<Checked> {
        let began = Instant::now();
        let mut checked = Vec::new();
        for command in &self.commands {
            let left = budget.saturating_sub(began.elapsed());
            let run = if left.is_zero() {
                Run::not_started("the commands before it took all the time there is")
            } else {
                command::run_unless(command, dir, self.limit.min(left), cancelled)
            };
            let green = run.is_green();
            checked.push(Checked { command: command.clone(), run });
            if !green {
                break;
            }
        }
        checked
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use crate::core::settings::{self, Layer, Source};
    use crate::store::command::Ended;
    use serde_json::{Value, json};

    fn verification(values: Value) -> Verification {
        let Value::Object(values) = values else { panic!("an object") };
        let layer = Layer { source: Source::User, place: "u.json".into(), values };
        Verification::of(&settings::resolve(&[layer]))
    }

    #[test]
    fn by_default_nothing_is_verified() {
        let none = verification(json!({}));
        assert!(none.is_empty() && none.run(Path::new("/"), &|| false).is_empty());
        assert_eq!(none.limit, Duration::from_secs(600));
    }

    #[test]
    fn they_run_in_order_up_to_the_first_red_one() {
        let checked = verification(json!({"completion.verify": ["true", "exit 7", "true"]}))
            .run(Path::new("/"), &|| false);
        let ends: Vec<_> = checked.iter().map(|one| (one.command.as_str(), one.run.ended.clone())).collect();
        assert_eq!(ends, [("true", Ended::Exit(0)), ("exit 7", Ended::Exit(7))]);
    }

    #[test]
    fn all_of_them_share_one_budget() {
        let all = verification(json!({
            "completion.verify": ["sleep 0.1", "sleep 30", "true"], "completion.verify_timeout_seconds": 60
        }));
        let checked = all.run_within(Path::new("/"), Duration::from_millis(400), &|| false);
        assert!(matches!(checked[1].run.ended, Ended::TimedOut(limit) if limit < Duration::from_millis(400)));
        let checked = all.run_within(Path::new("/"), Duration::ZERO, &|| false);
        assert!(matches!(checked[..], [Checked { run: Run { ended: Ended::NotStarted(_), .. }, .. }]));
    }

    #[test]
    fn the_hook_lives_longer_than_the_budget() {
        let most = verification(json!({"completion.verify_timeout_seconds": 999_999_999}));
        assert_eq!(most.limit, BUDGET);
        let hooks: Value = serde_json::from_str(include_str!("../../hooks/hooks.json")).unwrap();
        let limit = hooks["hooks"]["Stop"][0]["hooks"][0]["timeout"].as_u64().unwrap();
        assert!(
            BUDGET + Duration::from_secs(60) <= Duration::from_secs(limit),
            "it could not answer any more"
        );
    }
}
