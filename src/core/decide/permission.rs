//! Permissions that the client asks for while a loop runs: what a call is called, what the agent is told if the user does not
//! answer, and when a loop cannot continue without it.

use crate::core::record::{Denied, StoredLoop};
use crate::core::settings::tool_rule::{self, QUESTION_TOOL, SHELL, ToolRule};
use crate::core::text::clean;
use crate::core::time;
use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};

/// So many denials of the same call are told to the user, and so many turns with nothing else end the loop.
pub const MAX_DENIALS: u64 = 3;
const MAX_REMEMBERED_CALLS: usize = 20;
const MAX_QUESTION_CHARS: usize = 3000;

/// One call of a tool that needs a permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    tool: String,
    command: Option<String>,
    question: Option<String>,
    /// Nothing beside the command changes what a shell may do, such as leaving the sandbox.
    is_plain: bool,
}

impl ToolCall {
    pub fn new(tool: &str, input: &Value) -> ToolCall {
        let command = input.get("command").and_then(Value::as_str).map(str::to_owned);
        let question = (tool == QUESTION_TOOL).then(|| question(input));
        let is_plain =
            tool != SHELL || input.as_object().is_some_and(|fields| fields.iter().all(is_harmless));
        ToolCall { tool: tool.to_owned(), command, question, is_plain }
    }

    /// Returns the agent's question, if it asks the user one.
    pub fn question(&self) -> Option<&str> {
        self.question.as_deref()
    }

    /// Returns the first of these rules that allows the call.
    pub fn allowed_by<'a>(&self, rules: &'a [String]) -> Option<&'a str> {
        let allows = |rule: &&String| {
            ToolRule::parse(rule).is_ok_and(|rule| rule.allows(&self.tool, self.command.as_deref()))
        };
        let rule = rules.iter().find(allows).map(String::as_str);
        rule.filter(|_| self.question.is_none() && self.is_plain)
    }

    /// Returns the rule that would allow the call, if a rule can.
    pub fn rule(&self) -> Option<String> {
        tool_rule::for_call(&self.tool, self.command.as_deref()).filter(|_| self.is_plain)
    }

    /// Returns a number that tells calls apart, also those that read alike.
    fn id(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.tool, &self.command, self.is_plain).hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the call for people, such as `Bash(cargo test)`.
    pub fn shown(&self) -> String {
        if let Some(question) = &self.question {
            return clean::excerpt(question.lines().next().unwrap_or_default(), 80);
        }
        let tool = match clean::excerpt(&self.tool, 60) {
            tool if tool.is_empty() => "a tool".to_owned(),
            tool => tool,
        };
        match &self.command {
            Some(command) => format!("{tool}({})", clean::excerpt(command, 80)),
            None => tool,
        }
    }
}

/// Returns whether a field of a shell's input is its command, or changes nothing about what that may do.
fn is_harmless((name, value): (&String, &Value)) -> bool {
    match name.as_str() {
        "command" | "description" | "timeout" | "run_in_background" => true,
        "dangerouslyDisableSandbox" => *value == Value::Bool(false),
        _ => false,
    }
}

/// Returns the questions of the client's dialog with their options, as one text.
fn question(input: &Value) -> String {
    let text =
        |value: &Value, key: &str| clean::line(value.get(key).and_then(Value::as_str).unwrap_or_default());
    let list =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut lines = Vec::new();
    for question in list(input, "questions") {
        lines.push(text(&question, "question"));
        if question.get("multiSelect") == Some(&Value::Bool(true)) {
            lines.push("(several options can be chosen)".into());
        }
        for option in list(&question, "options") {
            let (label, description) = (text(&option, "label"), text(&option, "description"));
            lines.push(match description.is_empty() {
                true => format!("- {label}"),
                false => format!("- {label}: {description}"),
            });
        }
    }
    lines.retain(|line| !line.is_empty());
    if lines.is_empty() {
        lines.push("the agent asked a question without a text".into());
    }
    lines.join("\n").chars().take(MAX_QUESTION_CHARS).collect()
}

/// Why a prompt is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The user did not answer for so many milliseconds.
    NoAnswer(i64),
    /// The client would open the dialog of a subagent only after it was answered here.
    Subagent,
}

impl Reason {
    /// Returns the reason for the user.
    pub fn words(self) -> String {
        match self {
            Reason::NoAnswer(ms) => format!("no answer within {}", time::span(ms)),
            Reason::Subagent => "a subagent cannot ask while the loop runs".into(),
        }
    }
}

/// Returns what the agent reads as the result of a call that is denied for the `count`th time.
pub fn denial(call: &ToolCall, reason: Reason, count: u64) -> String {
    let (shown, why) = (call.shown(), reason.words());
    if call.question().is_some() {
        return format!(
            "Ralph: the question was not answered ({why}). End your turn now, without further work: Ralph then asks the user \
             elsewhere (ralph/decide.txt) and continues the loop with the answer."
        );
    }
    let else_ask = match reason {
        Reason::NoAnswer(_) => "",
        Reason::Subagent => " or leave this call to the main agent, which can ask,",
    };
    let again = if count >= MAX_DENIALS {
        format!(" It was denied {count} times: do not try it again.")
    } else {
        String::new()
    };
    format!(
        "Ralph: {shown} is denied: {why}.{again} Continue without it,{else_ask} or end your turn with \
         <promise>BLOCKED:reason</promise> if the task cannot be done without it."
    )
}

/// Counts a denial. Returns how often this call was denied in the run.
pub fn count(run: &mut StoredLoop, call: &ToolCall) -> u64 {
    let (calls, id) = (&mut run.session.denials.calls, call.id());
    let index = calls.iter().position(|denied| denied.id == id).unwrap_or_else(|| {
        if calls.len() >= MAX_REMEMBERED_CALLS {
            calls.remove(0);
        }
        calls.push(Denied { id, call: call.shown(), rule: call.rule(), ..Denied::default() });
        calls.len() - 1
    });
    calls[index].in_turn = true;
    calls[index].count = calls[index].count.saturating_add(1);
    calls[index].count
}

/// Takes note of the end of a turn; `progress` is `None` if it is not known whether there was any. Returns why the loop
/// cannot continue, if every one of the last turns was denied something and made no progress.
pub fn end_turn(run: &mut StoredLoop, progress: Option<bool>) -> Option<String> {
    let denials = &mut run.session.denials;
    let (mut denied, mut rules) = (Vec::new(), Vec::new());
    for call in &mut denials.calls {
        if std::mem::take(&mut call.in_turn) {
            denied.push(call.call.clone());
            rules.push(call.rule.clone());
        }
    }
    denials.turns_in_a_row = match progress {
        _ if denied.is_empty() => 0,
        Some(true) => 0,
        Some(false) => denials.turns_in_a_row.saturating_add(1),
        None => denials.turns_in_a_row,
    };
    if denied.is_empty() || denials.turns_in_a_row < MAX_DENIALS {
        return None;
    }
    let reason = blocked(&denied, denials.turns_in_a_row, &allow_hint(&rules));
    run.session.flags_to_allow = Some(flags(&rules.into_iter().flatten().collect::<Vec<_>>()));
    Some(reason)
}

/// Says how to allow calls, each by its rule or, without one, in the client.
pub fn allow_hint(rules: &[Option<String>]) -> String {
    let named: Vec<String> = rules.iter().flatten().cloned().collect();
    let flags = flags(&named);
    match (flags.is_empty(), rules.contains(&None)) {
        (true, _) => "no tool rule can allow exactly this; use /permissions in Claude Code".into(),
        (false, true) => {
            format!("{}; for the rest use /permissions in Claude Code", flags_hint(named.len(), &flags))
        }
        (false, false) => flags_hint(named.len(), &flags),
    }
}

/// Returns the flags that allow calls by these rules, as they are typed.
pub fn flags(rules: &[String]) -> String {
    rules.iter().map(|rule| flag("--allow-tool", rule)).collect::<Vec<_>>().join(" ")
}

/// Returns a flag with its value, as it is typed in a shell.
pub fn flag(name: &str, value: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-".contains(c);
    match value.chars().all(is_plain) {
        true => format!("{name} {value}"),
        false => format!("{name} '{}'", value.replace('\'', "'\\''")),
    }
}

/// Says that a loop is blocked by what it was denied.
fn blocked(denied: &[String], turns: u64, hint: &str) -> String {
    let were = if denied.len() == 1 { "was" } else { "were" };
    format!("{} {were} denied in {turns} turns in a row; {hint}", listed(denied))
}

/// Returns a list as it is read: `Write, Edit and Bash`.
pub fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [name] => name.clone(),
        [names @ .., last] => format!("{} and {last}", names.join(", ")),
    }
}

/// Says how to allow so many tools or calls.
pub fn flags_hint(count: usize, flags: &str) -> String {
    let what = if count == 1 { "it" } else { "them" };
    if flags.is_empty() {
        format!("allow {what} in the agent's own settings")
    } else {
        format!("to allow {what}: {flags}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn call(command: &str) -> ToolCall {
        ToolCall::new("Bash", &json!({"command": command, "description": "d"}))
    }

    #[test]
    fn a_call_is_named_harmlessly_whatever_is_in_it() {
        let long = "x".repeat(100_000);
        for (tool, input, shown) in [
            ("Bash", json!({"command": "cargo test"}), "Bash(cargo test)"),
            ("Bash", json!({"command": "a\u{1b}]0;x\u{7}\nb\u{202e}"}), "Bash(a]0;x b)"),
            ("Edit", json!({"file_path": "/x"}), "Edit"),
            ("", json!(null), "a tool"),
            ("New\u{1b}[2JTool", json!([1, {"command": 2}]), "New[2JTool"),
            ("Bash", json!({"command": {"a": 1}}), "Bash"),
            ("AskUserQuestion", json!({"questions": [{"question": "A or B?"}]}), "A or B?"),
        ] {
            assert_eq!(ToolCall::new(tool, &input).shown(), shown);
        }
        let shown = ToolCall::new(&long, &json!({"command": long})).shown();
        assert!(clean::columns(&shown) < 160, "{shown}");
    }

    #[test]
    fn only_a_rule_of_the_user_allows_and_never_a_question() {
        let rules: Vec<String> = ["broken(", "Bash(cargo test:*)", "Edit"].map(str::to_owned).into();
        assert_eq!(call("cargo test x").allowed_by(&rules), Some("Bash(cargo test:*)"));
        assert_eq!(call("cargo build").allowed_by(&rules), None);
        assert_eq!(call("x").allowed_by(&[]), None);
        for (more, value, rule) in [
            ("timeout", json!(5), Some("Bash(cargo test:*)")),
            ("run_in_background", json!(true), Some("Bash(cargo test:*)")),
            ("dangerouslyDisableSandbox", json!(false), Some("Bash(cargo test:*)")),
            ("dangerouslyDisableSandbox", json!(true), None),
            ("dangerouslyDisableSandbox", json!("false"), None),
            ("sandbox", json!(false), None),
        ] {
            let call = ToolCall::new("Bash", &json!({"command": "cargo test", more: value}));
            assert_eq!(call.allowed_by(&rules), rule, "{more}");
            assert_eq!(call.allowed_by(&["Bash".to_owned()]).is_some(), rule.is_some(), "{more}");
            assert_eq!(call.rule().is_some(), rule.is_some(), "{more}");
        }
        assert_eq!(ToolCall::new("Bash", &json!(["x"])).allowed_by(&["Bash".to_owned()]), None);
        let asked = ToolCall::new("AskUserQuestion", &json!({"command": "x"}));
        assert_eq!(asked.allowed_by(&["AskUserQuestion".to_owned(), "Bash".to_owned()]), None);
    }

    #[test]
    fn a_question_keeps_its_options() {
        let input = json!({"questions": [
            {"question": "Tabs or\nspaces?", "header": "Style", "multiSelect": true,
             "options": [{"label": "Tabs", "description": "use tabs"}, {"label": "Spaces"}]},
            {"question": "Ship it?", "options": "odd"},
        ]});
        let text = "Tabs or spaces?\n(several options can be chosen)\n- Tabs: use tabs\n- Spaces\nShip it?";
        assert_eq!(ToolCall::new(QUESTION_TOOL, &input).question(), Some(text));
        for odd in [json!(null), json!({"questions": 7}), json!({"questions": [null, {"question": ""}]})] {
            let asked = ToolCall::new(QUESTION_TOOL, &odd);
            assert_eq!(asked.question(), Some("the agent asked a question without a text"), "{odd}");
        }
        let huge = json!({"questions": [{"question": "x".repeat(90_000)}]});
        assert!(ToolCall::new(QUESTION_TOOL, &huge).question().unwrap().len() <= MAX_QUESTION_CHARS);
    }

    #[test]
    fn the_agent_reads_what_to_do_and_the_third_time_not_to_repeat_it() {
        let call = call("npm publish");
        let first = denial(&call, Reason::NoAnswer(300_000), 1);
        assert_eq!(
            first,
            "Ralph: Bash(npm publish) is denied: no answer within 5m. Continue without it, or end your turn with \
             <promise>BLOCKED:reason</promise> if the task cannot be done without it."
        );
        assert!(denial(&call, Reason::NoAnswer(1), 3).contains("denied 3 times: do not try it again"));
        assert!(denial(&call, Reason::Subagent, 1).contains("leave this call to the main agent"));
        let asked = ToolCall::new(QUESTION_TOOL, &json!({"questions": [{"question": "A?"}]}));
        let told = denial(&asked, Reason::NoAnswer(300_000), 1);
        assert!(told.contains("End your turn now") && told.contains("ralph/decide.txt"), "{told}");
    }

    #[test]
    fn three_turns_of_nothing_but_denials_block_the_loop_with_the_rule_that_helps() {
        let run = &mut StoredLoop::default();
        let turn = |run: &mut StoredLoop, denied: &[&str], progress| {
            for denied in denied {
                count(run, &call(denied));
            }
            end_turn(run, progress)
        };
        let rule = "npm publish";
        let (none, some, unknown) = (Some(false), Some(true), None);
        for (denied, progress) in [
            (&[rule][..], none),
            (&[rule], none),
            (&[], none),
            (&[rule], none),
            (&[rule], some),
            (&[rule], none),
            (&[rule], unknown),
            (&[rule], none),
        ] {
            assert_eq!(turn(run, denied, progress), None);
        }
        let other = run.clone();
        count(run, &ToolCall::new("Edit", &json!({"file_path": "/x"})));
        let reason = turn(run, &[rule], none).unwrap();
        assert_eq!(
            reason,
            "Bash(npm publish) and Edit were denied in 3 turns in a row; to allow them: \
             --allow-tool 'Bash(npm publish)' --allow-tool Edit"
        );
        assert_eq!(
            run.session.flags_to_allow.as_deref(),
            Some("--allow-tool 'Bash(npm publish)' --allow-tool Edit")
        );
        // A call that no rule names exactly is not answered by a rule for every command.
        for (denied, hint, flags) in [
            (&["ls *.rs"][..], "no tool rule can allow exactly this; use /permissions in Claude Code", ""),
            (
                &[rule, "a\nb"],
                "to allow it: --allow-tool 'Bash(npm publish)'; for the rest use /permissions in Claude Code",
                "--allow-tool 'Bash(npm publish)'",
            ),
        ] {
            let run = &mut other.clone();
            let reason = turn(run, denied, none).unwrap();
            assert!(reason.ends_with(&format!("3 turns in a row; {hint}")), "{reason}");
            assert_eq!(run.session.flags_to_allow.as_deref(), Some(flags));
        }
    }

    #[test]
    fn denials_are_counted_by_call_and_bounded() {
        let run = &mut StoredLoop::default();
        let edit = ToolCall::new("Edit", &json!({"file_path": "/x"}));
        assert_eq!((1..=3).map(|_| count(run, &edit)).collect::<Vec<_>>(), [1, 2, 3]);
        let long = "x".repeat(10_000);
        for other in
            ["echo a\necho b", "ls *.rs", "git commit -F - <<EOF", &format!("{long} 1"), &format!("{long} 2")]
        {
            assert_eq!(count(run, &call(other)), 1, "{other:.40}");
        }
        for n in 0..500 {
            count(run, &call(&format!("{n} {long}")));
        }
        assert_eq!(run.session.denials.calls.len(), MAX_REMEMBERED_CALLS);
    }

    #[test]
    fn a_flag_is_typed_as_it_is_shown() {
        assert_eq!(flag("--allow-tool", "Edit"), "--allow-tool Edit");
        assert_eq!(flag("--allow-tool", "Bash(echo 'a')"), r"--allow-tool 'Bash(echo '\''a'\'')'");
    }

    proptest! {
        #[test]
        fn no_input_panics(tool in ".{0,30}", text in ".{0,200}", keys in prop::collection::vec("questions|command|options|label|x", 0..4)) {
            let mut input = json!(text);
            for key in keys {
                input = json!({key.clone(): [input.clone(), null, 3], "command": text});
            }
            let call = ToolCall::new(&tool, &input);
            let said = [call.shown(), call.rule().unwrap_or_default(), denial(&call, Reason::NoAnswer(1000), 1)].concat();
            prop_assert!(!said.contains('\u{1b}') || tool.contains('\u{1b}'), "{said:?}");
            let asked = ToolCall::new(QUESTION_TOOL, &input);
            prop_assert!(asked.question().is_some_and(|question| !question.is_empty()));
        }
    }
}
