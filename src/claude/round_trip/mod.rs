//! A loop of two turns through the real Claude Code with a scripted model: how to start it, and what its output
//! proves.

pub mod messages_api;

use crate::claude::client::version::{OLDEST_WITH_MODULES, Version};
use crate::core::diagnosis::CheckNote;
use crate::core::text::clean;
use messages_api::{MessagesApi, Reply, message};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Claude Code wants a key, and the scripted model does not look at it.
pub const KEY: &str = "sk-ant-not-a-key";
/// The first reply only ends a turn, so the Stop hook must continue the loop; the second one ends the loop.
const REPLIES: [&str; 2] = ["Looked at it.", "Done.\n\n<promise>COMPLETE</promise>"];
const PROMPT: &str = "/ralph:start prove that the loop continues --max-iterations 3";
/// How Claude Code introduces the prompt of a Stop hook that blocks, and of one that adds context.
const INTRODUCTIONS: [&str; 2] = ["Stop hook feedback", "Stop hook additional context"];
/// A command that only the plugin's module registers.
const MODULE_COMMAND: &str = "ralph-forbid";
const MAX_QUOTE_CHARS: usize = 200;

/// The scripted model.
pub struct Model {
    api: MessagesApi,
    turns: Arc<Mutex<Vec<String>>>,
}

impl Model {
    pub fn start() -> io::Result<Model> {
        let turns = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&turns);
        let api = MessagesApi::start(move |request| {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            let text = REPLIES[seen.len().min(REPLIES.len() - 1)];
            seen.push(request["messages"].to_string());
            let content = vec![json!({"type": "text", "text": text})];
            let body = message(&seen.len().to_string(), &request["model"], content);
            Reply { status: 200, headers: Vec::new(), body, before_event: None }
        })?;
        Ok(Model { api, turns })
    }

    pub fn url(&self) -> String {
        self.api.url()
    }

    /// Returns the messages of each turn, as JSON text.
    pub fn turns(&self) -> Vec<String> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Returns the arguments that start Claude Code once, with the plugin in this folder.
pub fn arguments(plugin: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["-p".into(), "--plugin-dir".into(), plugin.into()];
    words.extend(
        ["--output-format", "stream-json", "--verbose", "--include-hook-events", PROMPT].map(Into::into),
    );
    words
}

#[derive(Clone, Debug, Default)]
pub struct RoundTrip {
    /// How Claude Code ended, for messages.
    pub ended: String,
    pub in_time: bool,
    pub stdout: String,
    pub stderr: String,
    /// What the model was sent in each turn.
    pub turns: Vec<String>,
    pub seconds: f64,
}

/// What Claude Code reported.
#[derive(Default)]
struct Events {
    /// Each hook that ran: its event, and its error.
    hooks: Vec<(String, Option<String>)>,
    plugin_errors: Vec<String>,
    /// The plugin's module has registered its commands.
    module: bool,
    result: String,
}

impl RoundTrip {
    pub fn diagnose(&self) -> CheckNote {
        let events = self.events();
        let ran = |event: &str| events.hooks.iter().any(|(name, _)| name == event);
        if !events.plugin_errors.is_empty() {
            let why = format!("Claude Code cannot load the plugin: {}", events.plugin_errors.join("; "));
            return CheckNote::failure(why, "reinstall the plugin: ralph install");
        }
        if self.turns.is_empty() {
            let why =
                format!("Claude Code did not call the model ({}): {}", self.ended, self.output(&events));
            return CheckNote::warning(
                why,
                "the other checks are still valid; `ralph doctor --quick` skips this one",
            );
        }
        if let Some((event, Some(why))) = events.hooks.iter().find(|(_, error)| error.is_some()) {
            return CheckNote::failure(format!("the {event} hook failed: {why}"), "see hook-programs");
        }
        if !ran("Stop") {
            let hint = "see plugin and hooks; a policy may also disable hooks";
            return CheckNote::failure(
                "Claude Code did not run the plugin's Stop hook; loops cannot continue",
                hint,
            );
        }
        if !ran("UserPromptExpansion") {
            let why = "hooks run, but this Claude Code passes no slash commands to them; the agent runs them instead";
            return CheckNote::warning(why, "update it: claude update");
        }
        let continued = |turn: &String| INTRODUCTIONS.iter().any(|words| turn.contains(words));
        if !self.turns.get(1).is_some_and(continued) {
            let why = format!(
                "hooks run, but the loop did not continue ({}): {}",
                self.ended,
                self.output(&events)
            );
            return CheckNote::failure(
                why,
                "reinstall the plugin: ralph install; if that does not help, report it",
            );
        }
        if !self.in_time {
            let why = format!("the loop continued, but Claude Code did not end: {}", self.ended);
            return CheckNote::warning(why, "try again when the machine is less busy");
        }
        CheckNote::ok(format!(
            "a loop of {} turns ran through Claude Code in {:.1} s",
            self.turns.len(),
            self.seconds
        ))
    }

    /// Says how the user's commands and guidance reach a running turn, in the client of this version.
    pub fn steering(&self, version: Version) -> CheckNote {
        let events = self.events();
        if !events.hooks.iter().any(|(name, _)| name == "Stop") {
            return CheckNote::skipped("Claude Code did not run a hook of the plugin");
        }
        let batch = "PostToolBatch: the agent reads new guidance after its next tool, commands wait for the turn's end";
        match events.module {
            true => CheckNote::ok(format!(
                "module (Claude Code {version}): /ralph-stop, /ralph-forbid and guidance act in a running turn"
            )),
            false if version >= OLDEST_WITH_MODULES => CheckNote::warning(
                format!("Claude Code {version} did not load the plugin's module and uses {batch}"),
                "an administrator may have disabled modules; `claude plugin validate` and `claude --debug` name other reasons",
            ),
            false => CheckNote::ok(format!(
                "{batch} (Claude Code {version}; {OLDEST_WITH_MODULES} loads the module)"
            )),
        }
    }

    pub fn loads_module(&self) -> bool {
        self.events().module
    }

    fn events(&self) -> Events {
        let mut events = Events::default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for event in self.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            match (event["type"].as_str(), event["subtype"].as_str()) {
                (Some("system"), Some("hook_response")) => {
                    let passed = event["exit_code"].as_i64().is_none_or(|code| code == 0)
                        && event["outcome"].as_str().is_none_or(|outcome| outcome == "success");
                    let stderr = clean::excerpt(&text(&event["stderr"]), MAX_QUOTE_CHARS);
                    let error = (!passed).then(|| format!("{} {stderr}", text(&event["outcome"])));
                    events.hooks.push((text(&event["hook_event"]), error));
                }
                (Some("system"), Some("init")) => {
                    let errors = event["plugin_errors"].as_array().into_iter().flatten();
                    events.plugin_errors.extend(errors.map(|error| {
                        let text = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
                        clean::excerpt(&text, MAX_QUOTE_CHARS)
                    }));
                }
                (Some("system"), Some("commands_changed")) => {
                    let commands = event["commands"].as_array().into_iter().flatten();
                    events.module |= commands.into_iter().any(|command| command["name"] == MODULE_COMMAND);
                }
                (Some("result"), _) => events.result = text(&event["result"]),
                _ => {}
            }
        }
        events
    }

    fn output(&self, events: &Events) -> String {
        let texts = [&self.stderr, &events.result, &self.stdout];
        let text = texts.into_iter().find(|text| !text.trim().is_empty());
        text.map_or("no output".into(), |text| clean::excerpt(text, MAX_QUOTE_CHARS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::diagnosis::Health;

    fn hook(event: &str, outcome: &str, code: i64) -> String {
        format!(
            r#"{{"type":"system","subtype":"hook_response","hook_event":"{event}","outcome":"{outcome}","exit_code":{code},"stderr":"no such file"}}"#
        )
    }

    fn round_trip(lines: &[String], turns: &[&str]) -> RoundTrip {
        let turns = turns.iter().map(|turn| (*turn).to_owned()).collect();
        RoundTrip {
            ended: "exit code 0".into(),
            in_time: true,
            stdout: lines.join("\n"),
            turns,
            ..RoundTrip::default()
        }
    }

    #[test]
    fn each_result_has_its_own_diagnosis() {
        let stop = || hook("Stop", "success", 0);
        let expansion = || hook("UserPromptExpansion", "success", 0);
        let second = "… Stop hook feedback:\\nRalph: 1 of 3 iterations done, runtime 1s …";
        let by_context = "… Stop hook additional context: Ralph: 1 of 3 iterations done, runtime 1s …";
        let init =
            r#"{"type":"system","subtype":"init","plugin_errors":[{"type":"hook-load-failed"}]}"#.to_owned();
        let mut late = round_trip(&[expansion(), stop()], &["first", second]);
        late.in_time = false;
        for (name, round_trip, verdict, words) in [
            ("well", round_trip(&[expansion(), stop()], &["first", second]), Health::Ok, "2 turns"),
            ("by context", round_trip(&[expansion(), stop()], &["first", by_context]), Health::Ok, "2 turns"),
            ("no hook", round_trip(&[], &["first"]), Health::Failure, "did not run"),
            ("old client", round_trip(&[stop()], &["first"]), Health::Warning, "slash commands"),
            (
                "broken",
                round_trip(&[expansion(), hook("Stop", "error", 127)], &["1"]),
                Health::Failure,
                "no such file",
            ),
            ("not loaded", round_trip(&[init], &["first"]), Health::Failure, "hook-load-failed"),
            (
                "ended early",
                round_trip(&[expansion(), stop()], &["first"]),
                Health::Failure,
                "did not continue",
            ),
            (
                "other words",
                round_trip(&[expansion(), stop()], &["first", "x"]),
                Health::Failure,
                "did not continue",
            ),
            ("no model", round_trip(&["Login first".into()], &[]), Health::Warning, "Login first"),
            ("late", late, Health::Warning, "did not end"),
        ] {
            let note = round_trip.diagnose();
            assert_eq!(note.verdict, verdict, "{name}: {note:?}");
            assert!(note.message.contains(words), "{name}: {note:?}");
        }
    }

    #[test]
    fn the_way_into_a_running_turn_is_named_with_the_version() {
        let loaded = r#"{"type":"system","subtype":"commands_changed","commands":[{"name":"ralph:forbid"},{"name":"ralph-forbid"}]}"#;
        let not_loaded =
            r#"{"type":"system","subtype":"commands_changed","commands":[{"name":"ralph:forbid"},7]}"#;
        let (old, new) = (Version(2, 1, 197), Version(2, 1, 325));
        for (name, line, version, verdict, words) in [
            ("module", loaded, new, Health::Ok, "module (Claude Code 2.1.325)"),
            (
                "refused",
                not_loaded,
                new,
                Health::Warning,
                "2.1.325 did not load the plugin's module and uses PostToolBatch",
            ),
            ("without modules", not_loaded, old, Health::Ok, "2.1.197; 2.1.286 loads the module"),
            ("silent", "", new, Health::Warning, "did not load"),
        ] {
            let note = round_trip(&[line.to_owned(), hook("Stop", "success", 0)], &[]).steering(version);
            assert_eq!(note.verdict, verdict, "{name}: {note:?}");
            assert!(note.message.contains(words), "{name}: {note:?}");
        }
        assert_eq!(round_trip(&[loaded.to_owned()], &[]).steering(new).verdict, Health::Skipped);
    }
}
