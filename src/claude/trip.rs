//! A loop of two turns through the real client, with a scripted model: how the client is called for it, and what
//! its output proves.

use crate::core::checkup::Note;
use crate::core::clean;
use serde_json::Value;
use std::path::Path;

pub const KEY: &str = "sk-ant-not-a-key";
/// The first reply only ends a turn, so that the Stop hook has to send the agent on; the second ends the loop.
pub const REPLIES: [&str; 2] = ["Looked at it.", "Done.\n\n<promise>COMPLETE</promise>"];
const PROMPT: &str = "/ralph:start prove that the loop goes on --max-iterations 3";
/// How the Stop hook's word begins in the second turn.
const FEEDBACK: &str = "Ralph: iteration 2 of 3";

/// The client's arguments, to run it once with the plugin of this folder.
pub fn arguments(plugin: &Path) -> Vec<std::ffi::OsString> {
    let mut words: Vec<std::ffi::OsString> = vec!["-p".into(), "--plugin-dir".into(), plugin.into()];
    words.extend(
        ["--output-format", "stream-json", "--verbose", "--include-hook-events", PROMPT].map(Into::into),
    );
    words
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Trip {
    /// How the client ended, in words.
    pub ended: String,
    pub in_time: bool,
    pub stdout: String,
    pub stderr: String,
    /// What the model was shown, turn by turn.
    pub turns: Vec<String>,
    pub seconds: f64,
}

#[derive(Default)]
struct Seen {
    /// Hooks that came to an end, by event, and what went wrong with one.
    hooks: Vec<(String, Option<String>)>,
    plugin_errors: Vec<String>,
    result: String,
}

impl Trip {
    pub fn judge(&self) -> Note {
        let seen = self.seen();
        let fired = |event: &str| seen.hooks.iter().any(|(name, _)| name == event);
        if !seen.plugin_errors.is_empty() {
            let why = format!("the client cannot load the plugin: {}", seen.plugin_errors.join("; "));
            return Note::failure(why, "lay the plugin out again: ralph install");
        }
        if self.turns.is_empty() {
            return Note::warning(
                format!(
                    "could not be tried, the client asked no model ({}): {}",
                    self.ended,
                    self.last_words(&seen)
                ),
                "the other lines still hold; --quick leaves this one out",
            );
        }
        if let Some((event, Some(why))) = seen.hooks.iter().find(|(_, fault)| fault.is_some()) {
            return Note::failure(
                format!("the client's {event} hook failed: {why}"),
                "see the line hook-programs",
            );
        }
        if !fired("Stop") {
            let hint = "see the lines plugin and hooks; a policy of the client's may forbid hooks too";
            return Note::failure("the client fires no Stop hook of the plugin: no loop would go on", hint);
        }
        if !fired("UserPromptExpansion") {
            let why =
                "hooks run, but this client does not hand slash commands to them: the agent passes them on";
            return Note::warning(why, "a newer Claude Code does: claude update");
        }
        if !self.turns.get(1).is_some_and(|turn| turn.contains(FEEDBACK)) {
            let said = self.last_words(&seen);
            return Note::failure(
                format!("hooks run, but the loop did not go on ({}): {said}", self.ended),
                "run `ralph doctor` with the plugin's own ralph; if it stays so, report it",
            );
        }
        if !self.in_time {
            let why = format!("the loop went on, but the client did not end: {}", self.ended);
            return Note::warning(why, "try again when the machine is less busy");
        }
        Note::ok(format!(
            "a loop of {} turns ran through the client in {:.1} s",
            self.turns.len(),
            self.seconds
        ))
    }

    fn seen(&self) -> Seen {
        let mut seen = Seen::default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for event in self.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            match (event["type"].as_str(), event["subtype"].as_str()) {
                (Some("system"), Some("hook_response")) => {
                    let well = event["exit_code"].as_i64().is_none_or(|code| code == 0)
                        && event["outcome"].as_str().is_none_or(|outcome| outcome == "success");
                    let why = || {
                        format!(
                            "{} {}",
                            text(&event["outcome"]),
                            clean::excerpt(&text(&event["stderr"]), 200)
                        )
                    };
                    seen.hooks.push((text(&event["hook_event"]), (!well).then(why)));
                }
                (Some("system"), Some("init")) => {
                    let errors = event["plugin_errors"].as_array().into_iter().flatten();
                    seen.plugin_errors.extend(errors.map(|error| match error {
                        Value::String(text) => clean::excerpt(text, 200),
                        other => clean::excerpt(&other.to_string(), 200),
                    }));
                }
                (Some("result"), _) => seen.result = text(&event["result"]),
                _ => {}
            }
        }
        seen
    }

    fn last_words(&self, seen: &Seen) -> String {
        let words = [&self.stderr, &seen.result, &self.stdout];
        let said = words.into_iter().find(|text| !text.trim().is_empty());
        said.map_or("it said nothing".into(), |text| clean::excerpt(text, 300))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::checkup::Verdict;

    fn hook(event: &str, outcome: &str, code: i64) -> String {
        format!(
            r#"{{"type":"system","subtype":"hook_response","hook_event":"{event}","outcome":"{outcome}","exit_code":{code},"stderr":"no such file"}}"#
        )
    }

    fn trip(lines: &[String], turns: &[&str]) -> Trip {
        let turns = turns.iter().map(|turn| (*turn).to_owned()).collect();
        Trip {
            ended: "exit code 0".into(),
            in_time: true,
            stdout: lines.join("\n"),
            turns,
            ..Trip::default()
        }
    }

    #[test]
    fn each_way_it_can_go_is_told_apart() {
        let stop = || hook("Stop", "success", 0);
        let expansion = || hook("UserPromptExpansion", "success", 0);
        let second = "… Stop hook feedback:\\nRalph: iteration 2 of 3, runtime 1s …";
        let init =
            r#"{"type":"system","subtype":"init","plugin_errors":[{"type":"hook-load-failed"}]}"#.to_owned();
        let mut late = trip(&[expansion(), stop()], &["first", second]);
        late.in_time = false;
        for (name, trip, verdict, words) in [
            ("well", trip(&[expansion(), stop()], &["first", second]), Verdict::Ok, "2 turns"),
            ("no hook", trip(&[], &["first"]), Verdict::Failure, "no Stop hook"),
            ("old client", trip(&[stop()], &["first"]), Verdict::Warning, "slash commands"),
            (
                "broken",
                trip(&[expansion(), hook("Stop", "error", 127)], &["1"]),
                Verdict::Failure,
                "no such file",
            ),
            ("not loaded", trip(&[init], &["first"]), Verdict::Failure, "hook-load-failed"),
            ("ended early", trip(&[expansion(), stop()], &["first"]), Verdict::Failure, "did not go on"),
            ("other words", trip(&[expansion(), stop()], &["first", "x"]), Verdict::Failure, "did not go on"),
            ("no model", trip(&["Login first".into()], &[]), Verdict::Warning, "Login first"),
            ("late", late, Verdict::Warning, "did not end"),
        ] {
            let note = trip.judge();
            assert_eq!(note.verdict, verdict, "{name}: {note:?}");
            assert!(note.message.contains(words), "{name}: {note:?}");
        }
    }
}
