//! The promise: never taken from inside a fence, and safe to show.

use ralph::core::signal::{Promise, promise};
use ralph::core::text::clean;

const COMPLETE: &str = "<promise>COMPLETE</promise>";

pub fn check(bytes: &[u8]) {
    let message = String::from_utf8_lossy(bytes);
    let accepted = |message: &str| promise(message, "COMPLETE").and_then(Result::ok);
    if let Some(made) = &accepted(&message) {
        // A carriage return ends a line too, as it does on a terminal.
        let lines = message.split(['\n', '\r']);
        let last = lines.map(clean::line).rfind(|line| !line.is_empty()).unwrap_or_default();
        // A status block, a code block or a quotation may follow.
        if last.contains("<promise>") {
            let bare = last.trim_matches(['*', '_', '`']);
            assert!(
                bare.starts_with("<promise>") && bare.ends_with("</promise>"),
                "not alone on the last line"
            );
            assert!(opens_in_a_list(&message) || !in_fence(&message), "taken from inside a fence");
        }
        if let Promise::Blocked(reason) | Promise::Decide(reason) = made {
            assert!(!reason.is_empty(), "nothing to tell a person");
            assert_eq!(*reason, clean::line(reason), "not safe to show");
        }
    }
    for (mark, other) in [('`', "~~~"), ('~', "```")] {
        let fence = mark.to_string().repeat(longest_run(&message, mark).max(2) + 1);
        let quoted = format!("{fence}\n{message}");
        assert_eq!(accepted(&quoted), None, "taken from inside a fence around it all");
        assert_eq!(accepted(&format!("{quoted}\n{fence}")), None, "taken from a quotation");
        let before = accepted(&format!("{message}\n{COMPLETE}"));
        let beyond = accepted(&format!("{message}\n{fence}\n{other}\n{fence}\n{COMPLETE}"));
        if before.is_some() {
            assert_eq!(beyond, Some(Promise::Complete), "a fence that was closed hides what follows");
        }
    }
    // Any text may be the one that is agreed on, if it shows at all and does not break the tag.
    let agreed = clean::line(&message);
    if !agreed.is_empty() && !agreed.contains("<promise>") && !agreed.contains("</promise>") {
        let kept = promise(&format!("ok\n<promise>{agreed}</promise>\n"), &message);
        assert_eq!(kept, Some(Ok(Promise::Complete)), "a promise that cannot be kept");
    }
}

/// A fence behind a list mark follows the rules of lists, which are not repeated here.
fn opens_in_a_list(message: &str) -> bool {
    let marks = |line: &str| line.contains("```") || line.contains("~~~");
    message.split(['\n', '\r']).any(|line| marks(line) && !line.trim_start().starts_with(['`', '~']))
}

/// Whether the last line that shows anything stands within a fence, as CommonMark has it.
fn in_fence(message: &str) -> bool {
    let mut lines: Vec<_> = message.split('\n').collect();
    while lines.pop().is_some_and(|line| clean::line(line).is_empty()) {}
    let mut open: Option<&str> = None;
    for line in lines.iter().flat_map(|line| line.split('\r')) {
        let text = line.trim_start_matches(' ');
        if line.len() - text.len() > 3 {
            continue;
        }
        let marks = &text[..longest_start(text)];
        let after = &text[marks.len()..];
        match open {
            None if marks.len() >= 3 && !(marks.starts_with('`') && after.contains('`')) => {
                open = Some(marks)
            }
            Some(fence) if marks.starts_with(fence) && after.trim_matches([' ', '\t']).is_empty() => {
                open = None
            }
            _ => {}
        }
    }
    open.is_some()
}

fn longest_start(text: &str) -> usize {
    let run = |mark: char| text.len() - text.trim_start_matches(mark).len();
    run('`').max(run('~'))
}

fn longest_run(text: &str, mark: char) -> usize {
    text.split(|c| c != mark).map(str::len).max().unwrap_or(0)
}
