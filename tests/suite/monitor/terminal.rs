//! The terminal is given back however the monitor ends, and any size will do.

use super::worlds::busy;
use crate::env::{Env, Program, wait_until};
use rustix::process::Signal;

#[test]
fn without_a_terminal_it_refuses_and_says_what_else_there_is() {
    let env = Env::new();
    let refused = env.ralph(&["monitor"]).fails(64);
    assert_eq!(
        refused,
        "error: ralph monitor needs a terminal\nhint: `ralph status` prints the same loops once\n"
    );
    let dumb =
        env.call(Program::Ralph).args(&["monitor"]).through("env", &["TERM=dumb"]).on_terminal((80, 24));
    dumb.sees("error: ralph monitor needs a terminal");
}

#[test]
fn every_way_to_end_gives_the_terminal_back() {
    let env = busy();
    for (how, code) in [("q", 0), ("\u{3}", 0)] {
        let mut terminal = env.monitor((80, 24), &[]);
        terminal.sees("▌● working");
        assert!(!terminal.is_given_back(), "it is taken");
        terminal.types(how);
        assert_eq!(terminal.wait(), Some(code), "{how:?}");
        terminal.wait_until_given_back();
    }
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut terminal = env.monitor((80, 24), &[]);
        terminal.sees("▌● working");
        terminal.signal(signal);
        assert_eq!(terminal.wait(), Some(130), "{signal:?}");
        terminal.wait_until_given_back();
    }
}

/// The reader of keys that we use would read a closed terminal forever.
#[test]
fn a_window_that_is_closed_ends_it() {
    let env = busy();
    let mut terminal = env.monitor((80, 24), &[]);
    terminal.sees("▌● working");
    terminal.close();
    assert_eq!(terminal.wait(), Some(130));
}

#[test]
fn it_is_drawn_anew_after_the_shell_had_the_terminal() {
    let env = busy();
    let mut terminal = env.monitor((80, 24), &[]);
    terminal.sees("▌● working");
    // What stands on the screen is written again only if all of it is drawn anew.
    let times_drawn = || String::from_utf8_lossy(&terminal.bytes()).matches("● working").count();
    let before = times_drawn();
    terminal.types("\u{c}");
    wait_until("it is drawn anew", || times_drawn() > before);
    let before = times_drawn();
    // No parent waits for it here, so the stop is only asked for.
    terminal.signal(Signal::STOP);
    terminal.signal(Signal::CONT);
    wait_until("it is drawn anew", || times_drawn() > before);
    terminal.types("?").sees("this help");
    terminal.types("qq");
    assert_eq!(terminal.wait(), Some(0));
}

#[test]
fn any_size_will_do_while_it_runs() {
    let env = busy();
    let terminal = env.monitor((200, 60), &[]);
    terminal.sees("Breaker");
    for (columns, rows, part) in [
        (1, 1, "…"),
        (39, 24, "too small: 39×24, needs 40×10"),
        (80, 9, "too small: 80×9, needs 40×10"),
        (40, 10, "▌● working   Migrate"),
        (72, 12, "Runtime "),
        (300, 100, "Breaker"),
        (80, 24, "▌● working   Migrate"),
    ] {
        terminal.resize(columns, rows);
        terminal.sees(part);
    }
}

#[test]
fn without_colour_nothing_is_coloured_and_all_is_said() {
    let env = busy();
    let terminal = env.var("NO_COLOR", "1").monitor((120, 40), &[]);
    terminal.types("G").sees("▌■ complete");
    terminal.sees("·x·r·✓");
    let codes = colours(&terminal.bytes());
    assert_eq!(codes, [""; 0], "{codes:?}");
    let terminal = env.without("NO_COLOR").monitor((120, 40), &[]);
    terminal.sees("▌● working");
    assert_ne!(colours(&terminal.bytes()), [""; 0], "a terminal that wants colours gets them");
}

/// Returns the parameters of escape codes that set a colour, other than the terminal's own.
fn colours(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let codes = regex::Regex::new("\u{1b}\\[([0-9;:]*)m").unwrap();
    let is_colour = |code: &&str| matches!(code.parse::<u32>(), Ok(30..=38 | 40..=48 | 90..=107));
    codes
        .captures_iter(&text)
        .filter(|found| found[1].split([';', ':']).any(|code| is_colour(&code)))
        .map(|found| found[1].to_owned())
        .collect()
}
