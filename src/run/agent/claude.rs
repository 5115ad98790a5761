//! Claude Code, started with `claude -p --output-format stream-json`.

use super::command::Tail;
use super::failure::last_error_line;
use super::{
    Abilities, AgentEvent, AgentFailure, AgentProgram, MAX_ANSWER_WAIT, OutputReader, Unavailable, ask,
};
use crate::claude::client::version::{OLDEST, Version};
use crate::claude::settings::{self, permissions};
use crate::claude::stream::{self, Limit, Lines, StreamEvent};
use crate::core::decide::permission;
use crate::core::signal::Reset;
use crate::core::text::clean;
use crate::core::time::Stamp;
use crate::run::process::target::Target;
use crate::store::project::Project;
use crate::store::world::World;
use serde::{Deserialize, Serialize};
use std::path::Path;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claude {
    /// The program, by default `claude` on the path.
    pub program: String,
    pub model: Option<String>,
    pub permission_mode: Option<String>,
    pub allowed_tools: Vec<String>,
    /// Further arguments, passed on unchanged.
    pub extra: Vec<String>,
}

impl Claude {
    pub fn allow(&mut self, rules: &[String]) {
        let new: Vec<_> = rules.iter().filter(|rule| !self.allowed_tools.contains(rule)).cloned().collect();
        self.allowed_tools.extend(new);
    }

    /// Returns whether the flags say which tools are allowed, or may do so in a file of settings.
    fn names_allowed_tools(&self) -> bool {
        const FLAGS: [&str; 6] = [
            "--permission-mode",
            "--dangerously-skip-permissions",
            "--allowedTools",
            "--allowed-tools",
            "--settings",
            "--permission-prompt-tool",
        ];
        let is_such = |arg: &String| FLAGS.contains(&arg.split('=').next().unwrap_or_default());
        !self.allowed_tools.is_empty() || self.extra.iter().any(is_such)
    }
}

impl AgentProgram for Claude {
    fn name(&self) -> String {
        self.program.clone()
    }

    fn abilities(&self) -> Abilities {
        Abilities { resumes: true, reports_tools: true }
    }

    fn command_line(&self, session: Option<&str>) -> Vec<String> {
        // Without partial messages the client is silent while the model writes a long text or a long tool input.
        let options = ["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"];
        let mut words: Vec<String> =
            [self.program.as_str()].into_iter().chain(options).map(str::to_owned).collect();
        let tools = Some(self.allowed_tools.join(",")).filter(|tools| !tools.is_empty());
        for (name, value) in [
            ("--resume", session),
            ("--model", self.model.as_deref()),
            ("--permission-mode", self.permission_mode.as_deref()),
            ("--allowedTools", tools.as_deref()),
        ] {
            words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value.to_owned()]));
        }
        words.extend(self.extra.iter().cloned());
        words
    }

    fn check(&self, target: &Target, _: &Path) -> Result<(), Unavailable> {
        const INSTALL: &str = "install Claude Code (npm install -g @anthropic-ai/claude-code), name it with --claude PATH, or \
                               use another program with --agent-command";
        const IN_CONTAINER: &str =
            "install Claude Code in the container, or name it there with --claude PATH";
        let version = match target.container() {
            Some(name) => {
                let args = ["exec", name, &self.program, "--version"];
                ask("docker", &args, MAX_ANSWER_WAIT, IN_CONTAINER)?
            }
            None => ask(&self.program, &["--version"], MAX_ANSWER_WAIT, INSTALL)?,
        };
        if Version::parse(&version).is_some_and(|version| version < OLDEST) {
            let message = format!("{} is version {}: too old", self.program, version.trim());
            return Err(Unavailable::new(message, "update it with npm install -g @anthropic-ai/claude-code"));
        }
        Ok(())
    }

    /// Claude Code asks for each edit, and no one can answer. What the settings in a container or a sandbox allow is not
    /// known here.
    fn warning(&self, world: &World, project: &Project, target: &Target) -> Option<String> {
        if *target != Target::Local || self.names_allowed_tools() {
            return None;
        }
        let settings = settings::ClientSettings::read(world, project, settings::managed_folder());
        let mode = permissions::mode_without_edits(&settings, self.permission_mode.as_deref())?;
        let flags = self.flags_to_allow(&["Edit", "Bash"].map(str::to_owned));
        let denied = match mode.as_str() {
            "plan" => "cannot edit files; to allow edits",
            _ => "denies edits and commands that would need your approval; to allow them",
        };
        Some(format!("in permission mode {mode}, Claude Code {denied}: {flags}"))
    }

    fn flags_to_allow(&self, tools: &[String]) -> String {
        let (edits, others): (Vec<&str>, Vec<&str>) = tools
            .iter()
            .map(String::as_str)
            .filter(|tool| *tool != stream::UNKNOWN_TOOL)
            .partition(|tool| EDITING_TOOLS.contains(tool));
        let mode = (!edits.is_empty()).then(|| "--permission-mode acceptEdits".to_owned());
        let flags: Vec<String> = mode.into_iter().chain(others.into_iter().map(flag_that_allows)).collect();
        // The client has not always named the tool.
        if flags.is_empty() {
            "--permission-mode MODE or --allowed-tools TOOL".into()
        } else {
            flags.join(" ")
        }
    }

    fn flags_to_continue(&self, denied: &[String]) -> String {
        let allowed = self.allowed_tools.iter().map(|tool| flag_that_allows(tool));
        allowed.chain([self.flags_to_allow(denied)]).collect::<Vec<_>>().join(" ")
    }

    fn unlogged(&self) -> &'static [u8] {
        stream::PARTIAL_LINE
    }

    fn reader(&self, _: bool) -> Box<dyn OutputReader> {
        Box::<StreamReader>::default()
    }
}

/// Tools whose success is an edit of a file.
const EDITING_TOOLS: [&str; 4] = ["Edit", "Write", "MultiEdit", "NotebookEdit"];

/// Returns the flag that allows a tool, as it is typed in a shell.
fn flag_that_allows(tool: &str) -> String {
    permission::flag("--allowed-tools", tool)
}

#[derive(Default)]
struct StreamReader {
    lines: Lines,
    state: StreamState,
    stderr: Tail,
}

impl OutputReader for StreamReader {
    fn stdout(&mut self, chunk: &[u8], emit: &mut dyn FnMut(AgentEvent<'_>)) {
        self.lines.feed(chunk, |line| self.state.read_line(line, emit));
    }

    fn stderr(&mut self, chunk: &[u8], _: &mut dyn FnMut(AgentEvent<'_>)) {
        self.stderr.add(chunk);
    }

    fn finish(&mut self, failed: bool, emit: &mut dyn FnMut(AgentEvent<'_>)) {
        self.lines.finish(|line| self.state.read_line(line, emit));
        let found = self.state.failure().or_else(|| {
            // It did not get as far as a result: a bad option, say.
            let text = self.stderr.text();
            let words = last_error_line(&text).filter(|_| failed && self.state.result.is_none())?;
            let failure =
                AgentFailure::of_output(&text).unwrap_or_else(|| AgentFailure::Other(words.clone()));
            Some((failure, words))
        });
        found.map(|(failure, words)| AgentEvent::Failed(failure, words)).into_iter().for_each(emit);
    }
}

/// What must be remembered of the stream to tell why the client failed.
#[derive(Default)]
struct StreamState {
    began: bool,
    /// The usage limit was last reported as reached.
    rejected: bool,
    resets_at: Option<Stamp>,
    /// The client's own word for the error it stopped at, and its status.
    error: Option<(String, Option<u16>)>,
    /// The last of possibly several.
    result: Option<stream::StreamResult>,
}

impl StreamState {
    fn read_line(&mut self, line: &str, emit: &mut dyn FnMut(AgentEvent<'_>)) {
        stream::events(line).into_iter().for_each(|event| self.read(event, emit));
    }

    fn read(&mut self, event: StreamEvent, emit: &mut dyn FnMut(AgentEvent<'_>)) {
        match event {
            StreamEvent::Init { session_id } => {
                self.began = true;
                session_id.map(|id| AgentEvent::Session(Some(id))).into_iter().for_each(emit);
            }
            StreamEvent::Text(text) => {
                self.error = None;
                emit(AgentEvent::Text(text));
            }
            StreamEvent::ToolStarted { id, name, summary } => {
                let edits = EDITING_TOOLS.contains(&name.as_str());
                emit(AgentEvent::ToolStarted { id, name, summary, edits });
            }
            StreamEvent::ToolEnded { id, failed } => emit(AgentEvent::ToolEnded { id, failed }),
            StreamEvent::Background { running } => emit(AgentEvent::Background(running)),
            StreamEvent::Retry { attempt, error_status } => {
                emit(AgentEvent::Retry { attempt, status: error_status });
            }
            StreamEvent::RateLimit { status: Limit::Rejected, resets_at } => {
                self.rejected = true;
                // A later event without a time does not take back an earlier one with it.
                self.resets_at = resets_at.or(self.resets_at);
            }
            StreamEvent::RateLimit { .. } => (self.rejected, self.resets_at) = (false, None),
            StreamEvent::Quota(windows) => emit(AgentEvent::Quota(windows)),
            StreamEvent::Context { tokens } => {
                emit(AgentEvent::Context { tokens: Some(tokens), window: None })
            }
            StreamEvent::ApiError { kind, status } => self.error = Some((kind, status)),
            StreamEvent::Result(result) => self.read_result(*result, emit),
            StreamEvent::Other => {}
        }
    }

    fn read_result(&mut self, result: stream::StreamResult, emit: &mut dyn FnMut(AgentEvent<'_>)) {
        if !self.began && result.is_error {
            // The client did not find the conversation to continue.
            emit(AgentEvent::Session(None));
        } else if let Some(id) = &result.session_id {
            emit(AgentEvent::Session(Some(id.clone())));
        }
        emit(AgentEvent::Usage(result.usage.clone()));
        if let Some(window) = result.context_window {
            emit(AgentEvent::Context { tokens: None, window: Some(window) });
        }
        if !result.denied_tools.is_empty() {
            emit(AgentEvent::Denied(result.denied_tools.clone()));
        }
        emit(AgentEvent::Result((!result.is_error).then(|| result.text.clone())));
        if !result.is_error {
            self.error = None;
        }
        self.result = Some(result);
    }

    /// Returns why the client failed, by its last result, or by what was seen before it was cut off. Returns `None`
    /// if it did not fail, or ended without saying anything: then its exit code is all there is.
    fn failure(&self) -> Option<(AgentFailure, String)> {
        let result = self.result.as_ref();
        if result.is_some_and(|result| !result.is_error) {
            return None;
        }
        let text = result.map_or("", |result| result.text.as_str());
        let word = result.and_then(|result| result.api_error.as_deref()).unwrap_or_default();
        let (kind, seen) = self.error.as_ref().map_or(("", None), |(kind, status)| (kind.as_str(), *status));
        let status = result.and_then(|result| result.api_error_status).or(seen);
        let words = [text, kind, result.map_or("", |result| result.subtype.as_str())];
        let words = words.map(|text| clean::excerpt(text, 300)).into_iter().find(|text| !text.is_empty());
        let found = self.usage_limit(status, word, text).or_else(|| classify(kind, status, word, text));
        let other = || {
            result?;
            Some(AgentFailure::Other(words.clone().unwrap_or_else(|| "unknown error".to_owned())))
        };
        Some((found.or_else(other)?, words.clone().unwrap_or_default()))
    }

    /// Recognises a usage limit by events, else by the client's own text. A 429 without a reset time is a throttle, even
    /// if the client calls it rejected, unless its text says which limit it is.
    fn usage_limit(&self, status: Option<u16>, word: &str, text: &str) -> Option<AgentFailure> {
        let told = match AgentFailure::of_message(text) {
            Some(AgentFailure::UsageLimit { resets }) => Some(resets),
            _ => None,
        };
        let rejected = self.rejected && status.is_none_or(|status| status == 429);
        if word != "usage_limit_reached" && !rejected && told.is_none() {
            return None;
        }
        let is_vague = told.is_none() || text.trim_end_matches('.').ends_with(" your limit");
        let resets = self.resets_at.map(Reset::At).or_else(|| told.flatten());
        let is_throttled = status == Some(429) || (word.is_empty() && rejected);
        if resets.is_none() && is_vague && is_throttled {
            return Some(AgentFailure::RateLimited);
        }
        Some(AgentFailure::UsageLimit { resets })
    }
}

/// Returns the failure that the client's words and the status name. Older clients have nothing but a text.
fn classify(kind: &str, status: Option<u16>, word: &str, text: &str) -> Option<AgentFailure> {
    Some(match kind {
        "billing_error" => AgentFailure::Billing,
        "authentication_failed" | "oauth_org_not_allowed" => AgentFailure::Authentication,
        "overloaded" => AgentFailure::Overloaded,
        _ => {
            return status.and_then(AgentFailure::of_status).or_else(|| match kind {
                "rate_limit" => Some(AgentFailure::RateLimited),
                "server_error" => Some(AgentFailure::ServerError(None)),
                _ if word == "connection_failed" => Some(AgentFailure::ServerError(None)),
                _ => AgentFailure::of_message(text),
            });
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::agent::AgentReport;

    /// What the real client printed (2.1.325 against a scripted API, cut down to what matters).
    macro_rules! sample {
        ($name:literal) => {
            include_str!(concat!("../../claude/stream/samples/", $name, ".jsonl"))
        };
    }

    fn report(text: &str) -> AgentReport {
        let (mut reader, mut report) = (StreamReader::default(), AgentReport::default());
        reader.stdout(text.as_bytes(), &mut |event| report.add(event));
        reader.finish(false, &mut |event| report.add(event));
        report
    }

    #[test]
    fn claude_is_called_with_what_was_asked_for() {
        let claude = Claude { program: "claude".into(), ..Claude::default() };
        let words = |claude: &Claude, session| claude.command_line(session).join(" ");
        let options = "-p --output-format stream-json --verbose --include-partial-messages";
        assert_eq!(words(&claude, None), format!("claude {options}"));
        let full = Claude {
            model: Some("opus".into()),
            permission_mode: Some("acceptEdits".into()),
            allowed_tools: vec!["Bash".into(), "Edit".into()],
            extra: vec!["--add-dir".into(), "/x".into()],
            ..claude
        };
        assert_eq!(
            words(&full, Some("s")),
            format!(
                "claude {options} --resume s --model opus --permission-mode acceptEdits --allowedTools Bash,Edit \
                 --add-dir /x"
            )
        );
    }

    #[test]
    fn a_conversation_that_is_not_found_is_lost() {
        let error = r#"{"type":"result","is_error":true,"session_id":"new"}"#;
        let init = r#"{"type":"system","subtype":"init","session_id":"s"}"#;
        let lost = report(error);
        assert!(lost.session_lost && lost.session.is_none());
        let failed = report(&format!("{init}\n{error}"));
        assert!(!failed.session_lost && failed.session.as_deref() == Some("new"));
        assert_eq!(report(init).session.as_deref(), Some("s"));
    }

    #[test]
    fn denied_tool_calls_are_counted() {
        assert_eq!(report(sample!("denied")).denied, ["Bash"]);
        assert!(report(sample!("tools")).denied.is_empty());
    }

    #[test]
    fn denied_tools_have_flags_that_allow_them() {
        let flags = |tools: &[&str]| {
            Claude::default().flags_to_allow(&tools.iter().map(|&tool| tool.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(flags(&["Bash"]), "--allowed-tools Bash");
        assert_eq!(
            flags(&["Write", "WebFetch", "Edit"]),
            "--permission-mode acceptEdits --allowed-tools WebFetch"
        );
        assert_eq!(flags(&[stream::UNKNOWN_TOOL]), "--permission-mode MODE or --allowed-tools TOOL");
        assert_eq!(flag_that_allows("Bash(git *)"), "--allowed-tools 'Bash(git *)'");
    }

    #[test]
    fn a_client_that_fails_before_its_first_event_is_quoted() {
        let said = |stderr: &str, failed: bool| {
            let (mut reader, mut report) = (StreamReader::default(), AgentReport::default());
            reader.stderr(stderr.as_bytes(), &mut |_| {});
            reader.finish(failed, &mut |event| report.add(event));
            report.error()
        };
        assert_eq!(
            said("error: unknown option '--frob'\n", true).as_deref(),
            Some("error: unknown option '--frob'")
        );
        let login =
            "not logged in: start the agent program once and log in · Invalid API key · Please run /login";
        assert_eq!(said("Invalid API key · Please run /login\n", true).as_deref(), Some(login));
        assert_eq!(said("error: unknown option '--frob'\n", false), None, "it exited with 0");
        assert_eq!(said("", true), None);
    }

    fn reset(seconds: i64) -> Option<Reset> {
        Some(Reset::At(Stamp(seconds * 1000)))
    }

    #[test]
    fn failures_of_the_real_client() {
        let model = "There's an issue with the selected model (claude-opus-5-5). It may not exist or you may not have \
                     access to it. Run --model to pick a different model.";
        let stopped = "[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=tool_use";
        let cases = [
            ("text", sample!("text"), None),
            ("tools", sample!("tools"), None),
            ("denied", sample!("denied"), None),
            ("near the limit", sample!("limit-warning"), None),
            (
                "usage limit",
                sample!("usage-limit"),
                Some(AgentFailure::UsageLimit { resets: reset(1_794_834_014) }),
            ),
            ("429", sample!("error-429"), Some(AgentFailure::RateLimited)),
            ("500", sample!("error-500"), Some(AgentFailure::ServerError(Some(500)))),
            ("529", sample!("error-529"), Some(AgentFailure::Overloaded)),
            ("connection refused", sample!("error-connection"), Some(AgentFailure::ServerError(None))),
            ("401", sample!("error-401"), Some(AgentFailure::Authentication)),
            ("403", sample!("error-403"), Some(AgentFailure::Authentication)),
            ("not logged in", sample!("error-login"), Some(AgentFailure::Authentication)),
            ("no credit", sample!("error-billing"), Some(AgentFailure::Billing)),
            ("402", sample!("error-402"), Some(AgentFailure::Billing)),
            ("404", sample!("error-404"), Some(AgentFailure::Other(model.to_owned()))),
            (
                "turns",
                sample!("max-turns"),
                Some(AgentFailure::Other("Reached maximum number of turns (1)".into())),
            ),
            ("SIGINT", sample!("interrupted"), Some(AgentFailure::Other(stopped.into()))),
            ("SIGTERM", sample!("terminated"), None),
            ("nothing at all", "", None),
        ];
        for (name, text, expected) in cases {
            assert_eq!(report(text).failure, expected, "{name}");
        }
        let passing = ["error-429", "error-500", "error-529", "error-connection"];
        let texts =
            [sample!("error-429"), sample!("error-500"), sample!("error-529"), sample!("error-connection")];
        for (name, text) in passing.iter().zip(texts) {
            let report = report(text);
            assert!(report.failure.as_ref().is_some_and(AgentFailure::is_transient), "{name}");
            assert_eq!(report.message(), None, "{name}: the error is not a message of the agent");
        }
        assert!(!AgentFailure::UsageLimit { resets: None }.is_transient());
    }

    #[test]
    fn failures_without_a_clear_result() {
        let error = r#"{"type":"result","is_error":true,"result":"TEXT"}"#;
        let rejected =
            r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1794834014}}"#;
        let allowed = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"}}"#;
        let clock = Reset::Clock {
            time: chrono::NaiveTime::from_hms_opt(15, 0, 0).unwrap(),
            date: None,
            zone: Some("UTC".into()),
        };
        let limit = "You've hit your session limit · resets 3pm (UTC)";
        let said = |text: &str| error.replace("TEXT", text);
        let cases = [
            ("by its text", said(limit), Some(AgentFailure::UsageLimit { resets: Some(clock) })),
            ("the agent's prose", said(limit).replace("true", "false"), None),
            ("events before text", format!("{rejected}\n{}", said(limit)), Some(AgentFailure::UsageLimit { resets: reset(1_794_834_014) })),
            ("events alone", format!("{rejected}\n{}", said("?")), Some(AgentFailure::UsageLimit { resets: reset(1_794_834_014) })),
            ("rejected and then killed", rejected.to_owned(), Some(AgentFailure::UsageLimit { resets: reset(1_794_834_014) })),
            ("rejected, then allowed", format!("{rejected}\n{allowed}\n{}", said("?")), Some(AgentFailure::Other("?".into()))),
            ("rejected, but that was not it", format!("{rejected}\n{}", r#"{"type":"result","is_error":true,"api_error_status":503}"#),
                Some(AgentFailure::ServerError(Some(503)))),
            ("rejected, and yet it went well", format!("{rejected}\n{}", r#"{"type":"result","is_error":false}"#), None),
            ("the client's word", r#"{"type":"result","is_error":true,"api_error":"usage_limit_reached"}"#.to_owned(), Some(AgentFailure::UsageLimit { resets: None })),
            ("a throttle that is called rejected", rejected.replace(",\"resetsAt\":1794834014", ""), Some(AgentFailure::RateLimited)),
            ("a 429 without a reset time", format!("{}\n{}", rejected.replace(",\"resetsAt\":1794834014", ""),
                r#"{"type":"result","is_error":true,"api_error_status":429,"api_error":"usage_limit_reached","result":"You've hit your limit"}"#),
                Some(AgentFailure::RateLimited)),
            ("a limit that is named, without a time",
                r#"{"type":"result","is_error":true,"api_error_status":429,"result":"You've hit your weekly limit"}"#.to_owned(),
                Some(AgentFailure::UsageLimit { resets: None })),
            ("the limit of an API key", r#"{"type":"result","is_error":true,"api_error_status":400,"result":"API Error: 400 You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}"#.to_owned(),
                Some(AgentFailure::UsageLimit { resets: reset(1_796_083_200) })),
            ("an older client without credit", said("Credit balance is too low"), Some(AgentFailure::Billing)),
            ("an older client without a key", said("Invalid API key · Please run /login"), Some(AgentFailure::Authentication)),
            ("an error, then a good turn", format!("{}\n{}", said("x"), r#"{"type":"result","is_error":false,"result":"ok"}"#), None),
            ("no text at all", r#"{"type":"result","is_error":true}"#.to_owned(), Some(AgentFailure::Other("unknown error".into()))),
            ("hostile text", said("a\\u001b[2Jb"), Some(AgentFailure::Other("a[2Jb".into()))),
            ("killed while it gave up", r#"{"type":"assistant","error":"server_error","is_api_error_message":true,"api_error_status":500}"#.to_owned(),
                Some(AgentFailure::ServerError(Some(500)))),
        ];
        for (name, text, expected) in cases {
            assert_eq!(report(&text).failure, expected, "{name}");
        }
    }

    #[test]
    fn a_turn_with_tools() {
        let report = report(sample!("tools"));
        assert_eq!(report.session.as_deref(), Some("s-tools"));
        assert_eq!(
            (report.tools_used, report.edits, report.running()),
            (6, 1, 0),
            "the edit that failed is none"
        );
        assert_eq!(report.message(), Some("finished"));
        assert_eq!((report.usage.tokens(), report.usage.cost_usd), (60, Some(0.0005600000000000001)));
    }

    #[test]
    fn tools_without_a_result_are_running() {
        let half: Vec<&str> = sample!("tools").lines().take(4).collect();
        let report = report(&half.join("\n"));
        assert_eq!((report.message(), report.edits, report.running()), (Some("working"), 0, 2));
    }

    #[test]
    fn background_work_continues_after_a_result() {
        let all: Vec<&str> = sample!("background").lines().collect();
        let first = 1 + all.iter().position(|line| line.contains(r#""type":"result""#)).unwrap();
        let waiting = report(&all[..first].join("\n"));
        assert_eq!((waiting.message(), waiting.running()), (Some("waiting for it"), 1));
        let done = report(sample!("background"));
        assert_eq!((done.message(), done.running()), (Some("bg seen"), 0));
        assert_eq!(done.usage.cost_usd, Some(0.00042), "the client's figure includes the turn before");
        assert_eq!(done.usage.tokens(), 45, "its tokens do not");
    }

    #[test]
    fn a_sub_agent_uses_tools_but_its_text_is_no_message() {
        let all: Vec<&str> = sample!("sub-agent").lines().collect();
        let spoken = 1 + all.iter().position(|line| line.contains("sub speaking")).unwrap();
        assert_eq!(report(&all[..spoken].join("\n")).message(), None);
        let report = report(sample!("sub-agent"));
        assert_eq!((report.message(), report.tools_used, report.running()), (Some("main done"), 2, 0));
    }

    #[test]
    fn partial_messages_are_not_counted_twice() {
        let partial = std::str::from_utf8(stream::PARTIAL_LINE).unwrap();
        assert!(sample!("partial").lines().filter(|line| line.starts_with(partial)).count() > 4);
        let report = report(sample!("partial"));
        assert_eq!((report.message(), report.tools_used), (Some("working"), 1));
    }
}
