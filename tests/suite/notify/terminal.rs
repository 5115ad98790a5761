//! The terminal of a runner shows a desktop notification; what is no terminal gets no escape sequence.

use crate::env::Env;

const SHOWN: &str = "\u{1b}]9;Ralph: task complete · project: ";

#[test]
fn a_runner_notifies_through_its_terminal_and_through_nothing_else() {
    let env = Env::new();
    let script = "promise COMPLETE";
    let printed = env.run_with(script, &["x"]).var("TERM", "xterm-256color").run_on_terminal();
    assert!(printed.contains(SHOWN) && printed.contains("\u{1b}\\\u{7}"), "{printed:?}");
    let printed = env.run_with(script, &["x"]).var("TERM", "foot").run_on_terminal();
    assert!(printed.contains("\u{1b}]777;notify;Ralph: task complete · project;"), "{printed:?}");
    let call =
        env.run_with(script, &["x"]).var("TERM", "xterm-256color").var("RALPH_NOTIFY_TERMINAL", "false");
    let printed = call.run_on_terminal();
    assert!(!printed.contains("\u{1b}]"), "{printed:?}");
    let printed = env.run_with(script, &["--json", "x"]).var("TERM", "xterm-256color").run_on_terminal();
    assert!(!printed.contains('\u{1b}'), "{printed:?}");
    let printed = env.run_with(script, &["x"]).var("TERM", "xterm-256color").run().ok();
    assert!(!printed.contains(['\u{1b}', '\u{7}']), "{printed:?}");
}

#[test]
fn the_test_notifies_through_a_terminal() {
    let env = Env::new();
    let call = env.call(crate::env::Program::Ralph).args(&["notify", "--test"]).var("TERM", "xterm-256color");
    let printed = call.run_on_terminal();
    assert!(printed.contains("\u{1b}]9;Ralph: test · project: This is a test"), "{printed:?}");
    assert!(printed.contains("sent OSC 9 and the bell"), "{printed:?}");
}
