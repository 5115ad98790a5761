//! Rules for tools that the user allows for a loop, in three of the forms of Claude Code's own permission rules: `Tool`,
//! `Bash(exact command)` and `Bash(prefix:*)`. Everything else is refused when it is given, and matches nothing.

use crate::core::text::clean;

/// The only tool whose rules may say which call.
pub const SHELL: &str = "Bash";
/// The client's own question to the user, which only an answer settles.
pub const QUESTION_TOOL: &str = "AskUserQuestion";
const MAX_CHARS: usize = 2000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRule<'a> {
    tool: &'a str,
    calls: Calls<'a>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Calls<'a> {
    All,
    /// This command.
    Exact(&'a str),
    /// This command with any further words, as long as it is one simple command.
    Prefix(&'a str),
}

impl<'a> ToolRule<'a> {
    /// Parses a rule, or says what is wrong with it.
    pub fn parse(text: &'a str) -> Result<ToolRule<'a>, String> {
        let quoted = || clean::excerpt(text, 80);
        let wrong = |why: &str| Err(format!("'{}' is not a valid tool rule: {why}", quoted()));
        if text.chars().count() > MAX_CHARS || text.chars().any(char::is_control) {
            return wrong("give one line of at most 2000 characters");
        }
        let trimmed = trim(text);
        let (tool, rest) = trimmed.split_at(trimmed.find('(').unwrap_or(trimmed.len()));
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if !tool.starts_with(|c: char| c.is_ascii_alphabetic()) || !tool.chars().all(is_name) {
            return wrong("give Tool, Bash(command) or Bash(prefix:*)");
        }
        if tool == QUESTION_TOOL {
            return wrong("a question needs an answer, not a permission");
        }
        if rest.is_empty() {
            return Ok(ToolRule { tool, calls: Calls::All });
        }
        if tool != SHELL {
            return wrong(
                "only Bash can name a command; allow the whole tool, or use Claude Code's own permissions",
            );
        }
        let Some(command) = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) else {
            return wrong("the last parenthesis is missing");
        };
        let (command, is_prefix) = match command.strip_suffix(":*") {
            Some(prefix) => (trim(prefix), true),
            None => (trim(command), false),
        };
        if command.is_empty() {
            return wrong("it would allow every command; if you mean that, give Bash");
        }
        if command.contains('*') {
            return wrong("`*` is only allowed in `:*` at the end");
        }
        if is_prefix && !is_simple(command) {
            return wrong(&format!("a prefix is one simple command: letters, digits, spaces and {HARMLESS}"));
        }
        let calls = if is_prefix { Calls::Prefix(command) } else { Calls::Exact(command) };
        Ok(ToolRule { tool, calls })
    }

    /// Returns whether the rule allows a call; `command` is what a shell would be given.
    pub fn allows(&self, tool: &str, command: Option<&str>) -> bool {
        let command = command.map(trim);
        tool == self.tool
            && match (&self.calls, command) {
                (Calls::All, _) => true,
                (Calls::Exact(allowed), Some(command)) => command == *allowed,
                (Calls::Prefix(prefix), Some(command)) => {
                    let rest = command.strip_prefix(prefix);
                    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')) && is_simple(command)
                }
                (_, None) => false,
            }
    }
}

/// Returns the rule that allows exactly this call of a shell, or the whole of another tool; `None` if no rule can say so.
pub fn for_call(tool: &str, command: Option<&str>) -> Option<String> {
    const MAX_COLUMNS: usize = 160;
    let rule = if tool == SHELL { format!("{SHELL}({})", trim(command?)) } else { tool.to_owned() };
    // A rule that is shown differently from what it says would match something else.
    let is_shown = |rule: &String| clean::columns(rule) <= MAX_COLUMNS && clean::line(rule) == *rule;
    Some(rule)
        .filter(is_shown)
        .filter(|rule| ToolRule::parse(rule).is_ok_and(|rule| rule.allows(tool, command)))
}

/// Removes what a shell passes over at both ends. Other white space is part of a word there, and so of a program's name.
fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n'])
}

/// The characters, besides letters, digits and blanks, that a command may have for a prefix to allow it. Quotes group words;
/// none of these makes any shell start a program, read a variable or open a file.
const HARMLESS: &str = "'\"_-./,:=+@%~*?#";

/// Returns whether a shell starts one program with these words and does nothing else. Shells start programs from within
/// words, quotes and arithmetic too, so what is not known to be harmless is asked.
fn is_simple(command: &str) -> bool {
    command.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '\t') || HARMLESS.contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_rule_matches_what_it_says_and_nothing_else() {
        for (rule, tool, command, allowed) in [
            ("Bash", "Bash", Some("rm -rf x && y"), true),
            ("Bash", "Bash", None, true),
            ("Bash", "BashOutput", None, false),
            ("bash", "Bash", Some("x"), false),
            ("mcp__files__write", "mcp__files__write", None, true),
            ("mcp__files", "mcp__files__write", None, false),
            ("Bash(cargo test)", "Bash", Some("cargo test"), true),
            ("Bash(cargo test)", "Bash", Some(" cargo test\n"), true),
            ("Bash(cargo test)", "Bash", Some("cargo test x"), false),
            ("Bash(cargo test)", "Bash", Some("Cargo test"), false),
            ("Bash(cargo test)", "Bash", None, false),
            ("Bash(cargo test)", "Shell", Some("cargo test"), false),
            ("Bash(a && b)", "Bash", Some("a && b"), true),
            ("Bash(echo (x))", "Bash", Some("echo (x)"), true),
            ("Bash(cargo test:*)", "Bash", Some("cargo test"), true),
            (
                "Bash(cargo test:*)",
                "Bash",
                Some("cargo test --lib 'a b' \"c\" -j=2 ~/x ./a,b:c@d%e+f# *.r? é"),
                true,
            ),
            ("Bash(cargo test:*)", "Bash", Some("\n cargo test\tx \t"), false),
            ("Bash(cargo test:*)", "Bash", Some("\n cargo test x \t"), true),
            ("Bash(/usr/bin/make)", "Bash", Some("\u{a0}/usr/bin/make"), false),
            ("Bash(/usr/bin/make)", "Bash", Some("/usr/bin/make\u{3000}"), false),
            ("Bash(/usr/bin/make)", "Bash", Some("\u{85}/usr/bin/make"), false),
            ("Bash(/usr/bin/make)", "Bash", Some("\u{b}/usr/bin/make"), false),
            ("Bash(/usr/bin/make)", "Bash", Some("\u{c}/usr/bin/make"), false),
            ("Bash(/usr/bin/make)", "Bash", Some("/usr/bin/make\r"), false),
            ("Bash(/usr/bin/make:*)", "Bash", Some("\u{a0}/usr/bin/make x"), false),
            ("Bash(/usr/bin/make:*)", "Bash", Some("/usr/bin/make x\u{2028}"), false),
            ("Bash(cargo test:*)", "Bash", Some("cargo testament"), false),
            ("Bash(cargo test:*)", "Bash", Some("cargo  test"), false),
            ("Bash(cargo test:*)", "Bash", Some("X=1 cargo test"), false),
            ("Bash(cargo test:*)", "Bash", Some("echo cargo test"), false),
        ] {
            assert_eq!(
                ToolRule::parse(rule).unwrap().allows(tool, command),
                allowed,
                "{rule}: {tool} {command:?}"
            );
        }
    }

    #[test]
    fn a_prefix_never_allows_more_than_one_program() {
        let rule = ToolRule::parse("Bash(cargo test:*)").unwrap();
        for more in [
            "&& rm x",
            "; rm x",
            "| sh",
            "|| rm x",
            "& rm x",
            "$(rm x)",
            "`rm x`",
            "\nrm x",
            "\r\nrm x",
            "> /etc/x",
            "< x",
            "2>&1",
            "<(rm x)",
            "=(rm x)",
            "*(e:'rm x':)",
            "\"$(rm x)\"",
            "${x@P}",
            "\0rm",
            "\u{b}rm",
            // Arithmetic is expanded once more after its quotes are gone.
            "$[$'a[\\x24\\x28touch pwn\\x29]']",
            "$((a[$(rm x)]))",
            "$[x]",
            "$HOME",
            "$x[1]",
            "$'\\x3b rm'",
            "$\"x\"",
            "'$x'",
            "\\",
            "\\\nrm x",
            "{a,b}",
            "a[x]",
            "!rm",
            "^a^b",
            "x\rrm",
            "<<EOF",
            "\u{a0}x",
            "\u{202e}x",
        ] {
            assert!(!rule.allows("Bash", Some(&format!("cargo test {more}"))), "{more:?}");
        }
    }

    #[test]
    fn forms_that_are_not_understood_are_refused() {
        for (text, why) in [
            ("", "give Tool"),
            ("*", "give Tool"),
            ("Bash(", "parenthesis is missing"),
            ("Bash(x", "parenthesis is missing"),
            ("Bash(x) y", "parenthesis is missing"),
            ("Bash()", "every command"),
            ("Bash(:*)", "every command"),
            ("Bash(*)", "`*` is only allowed"),
            ("Bash(git * main)", "`*` is only allowed"),
            ("Bash(npm run*)", "`*` is only allowed"),
            ("Bash(a && b:*)", "one simple command"),
            ("Bash(echo $[:*)", "one simple command"),
            ("Bash(a \\:*)", "one simple command"),
            ("\u{a0}Edit", "give Tool"),
            ("Bash(\u{a0}:*)", "one simple command"),
            ("Edit(src/**)", "only Bash"),
            ("WebFetch(domain:x.org)", "only Bash"),
            ("AskUserQuestion", "needs an answer"),
            ("Ba sh", "give Tool"),
            ("mcp__x__*", "give Tool"),
            ("Bash(a\nb)", "one line"),
        ] {
            let wrong = ToolRule::parse(text).unwrap_err();
            assert!(wrong.contains(why), "{text:?}: {wrong}");
        }
        assert!(ToolRule::parse(&"x".repeat(2001)).is_err());
    }

    #[test]
    fn the_rule_for_a_call_allows_that_call_and_no_other() {
        for (tool, command, rule) in [
            ("Bash", Some("npm publish"), "Bash(npm publish)"),
            ("Bash", Some("a && b"), "Bash(a && b)"),
            ("Edit", None, "Edit"),
            ("mcp__x__y", Some("ignored"), "mcp__x__y"),
        ] {
            assert_eq!(for_call(tool, command).as_deref(), Some(rule));
            assert!(ToolRule::parse(rule).unwrap().allows(tool, command), "{rule}");
        }
        let (long, long_name) = ("x ".repeat(500), "x".repeat(100_000));
        for (tool, command) in [
            ("Bash", Some("a *.rs")),
            ("Bash", Some("a\nb")),
            ("Bash", Some("a  b")),
            ("Bash", Some("a \u{202e}b")),
            ("Bash", Some("")),
            ("Bash", None),
            ("Bash", Some("\u{a0}make")),
            ("Bash", Some(&long)),
            ("New\u{1b}[2JTool", None),
            ("AskUserQuestion", None),
            ("", None),
            (&long_name, None),
        ] {
            assert_eq!(for_call(tool, command), None, "{tool:.20} {command:?}");
        }
    }

    proptest! {
        /// What a prefix allows is one simple command that begins with it.
        #[test]
        fn a_prefix_is_a_prefix(
            begin in "(ls|ls |)",
            rest in "[a-z \\t\\n\\r\\x0b\\x0c\u{85}\u{a0}\u{3000}\u{202e};&|$(){}<>`'\"=*\\[\\]\\\\!^#~?/.-]{0,12}",
        ) {
            let (rule, command) = (ToolRule::parse("Bash(ls:*)").unwrap(), begin + &rest);
            if rule.allows("Bash", Some(&command)) {
                let words = command.trim_matches([' ', '\t', '\n']);
                prop_assert!(words == "ls" || words.starts_with("ls "));
                prop_assert!(!words.contains(|c: char| c.is_control() && c != '\t'));
                prop_assert!(words.chars().all(|c| c == ' ' || !c.is_whitespace() || c == '\t'));
                let more = words.contains(['&', ';', '|', '<', '>', '`', '(', ')', '$', '\\', '{', '}', '[', ']', '!', '^']);
                prop_assert!(!more, "{words:?}");
            }
        }

        #[test]
        fn no_text_panics(text in ".{0,60}", command in ".{0,60}") {
            let _ = for_call(&text, Some(&command));
            let _ = ToolRule::parse(&text).map(|rule| rule.allows("Bash", Some(&command)));
        }
    }
}
