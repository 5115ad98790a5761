//! `docs/session.svg`: a picture of a loop in the real client, with a scripted model.
//!
//! `scripts/record-session` records it again; otherwise this is the test that the picture is up to date.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use regex::Regex;
use serde_json::json;

use crate::client::Session;
use crate::messages_api::{Api, Reply};
use crate::ralph::{SOON, session};
use crate::terminal_svg;
use crate::tmux::Screen;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/session.svg");

/// Wide enough for the client, narrow enough for a README; high enough that nothing scrolls off.
const SIZE: (u16, u16) = (108, 70);

/// The program the agent repairs: it prints nothing for an empty list.
const TOTAL: &str = "#!/bin/sh\nawk '{ sum += $2 } END { print sum }' \"$1\"\n";

/// Waits until `typed` exists: the picture needs a command that was typed while the agent was working.
const TEST: &str = r#"#!/bin/sh
until [ -e ../typed ]; do sleep 0.05; done
failed=0
check() {
  got=$(printf "$2" | ./total.sh -)
  [ "$got" = "$3" ] || { echo "FAILED: $1: expected $3, got '$got'"; failed=1; }
}
check "two prices" 'tea 3\nmilk 2\n' 5
check "an empty list" '' 0
check "cents" 'tea 0.1\nmilk 0.2\n' 0.30
[ $failed = 0 ] && echo "3 passed"
exit $failed
"#;

fn bash(command: &str) -> Reply {
    Reply::tool("Bash", json!({"command": command, "description": "work"}))
}

/// The agent stops early, then claims completion too soon, then completes.
fn script() -> Vec<Reply> {
    let promise = |text: &str| Reply::text(&format!("{text}\n<promise>COMPLETE</promise>"));
    vec![
        bash("./test.sh"),
        Reply::text("Two tests fail. I will continue after a break."),
        bash("sed -i 's/print sum/print sum + 0/' total.sh"),
        promise("An empty list now prints 0. All tests should pass."),
        bash(
            "sed -i 's/print sum + 0/print sum % 1 ? sprintf(\"%.2f\", sum) : sum + 0/' total.sh; ./test.sh",
        ),
        promise("Cents now have two digits, and all tests pass."),
    ]
}

fn prepare(session: &Session) {
    for (name, text) in [("total.sh", TOTAL), ("test.sh", TEST)] {
        let file = session.project().join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Removes what differs between two recordings: seconds, how many tokens the transcript showed in time, and the
/// client's line on how long it worked.
fn masked(screen: &str) -> String {
    let text = Regex::new("[0-9]+(s[^a-z]| tokens)").unwrap().replace_all(screen, "0$1").into_owned();
    text.lines().map(|line| if line.starts_with('✻') { "✻" } else { line }).collect::<Vec<_>>().join("\n")
}

/// Returns the conversation: from the client's name to the last line above the input box.
fn conversation(screen: &str) -> String {
    let plain = terminal_svg::plain(screen);
    let lines: Vec<&str> = plain.lines().map(str::trim_end).collect();
    let box_at = lines.iter().rposition(|line| line.starts_with('❯')).unwrap();
    let kept = screen.lines().take(box_at - 1).collect::<Vec<_>>().join("\n");
    kept.trim_end().to_owned()
}

#[test]
fn session_recording_is_up_to_date() {
    let api = Api::start(script());
    let Some(session) = session(&api) else { return };
    if !Screen::available() {
        return;
    }
    prepare(&session);
    // The client shows folders below the home folder with `~`.
    let home = session.root().to_owned();
    let session = session.env("HOME", home).arg("--permission-mode").arg("acceptEdits");
    let screen = Screen::start_sized(&session, &[], SIZE);

    screen.type_line("/ralph:start make the tests pass --verify ./test.sh --max-hours 4");
    screen.wait_for("Running", SOON);
    screen.type_line("/ralph:forbid changing test.sh");
    // Ralph learns of the waiting command from the transcript.
    screen.wait_until(|_| fs::read_to_string(session.transcript()).unwrap().contains("enqueue"), SOON);
    fs::write(session.root().join("typed"), "").unwrap();
    screen.wait_for("Ralph ended (complete)", SOON);
    // The client's own last line comes after the hook's.
    screen.wait_until(|text| text.matches(" · done ").count() == 2, SOON);

    let now = terminal_svg::picture("$ claude", &conversation(&screen.visible(true)), SIZE.0.into());
    if std::env::var_os("RALPH_RECORD").is_some() {
        fs::write(FILE, &now).unwrap();
    }
    let recorded = fs::read_to_string(FILE).unwrap_or_default();
    let (was, is) = (masked(&terminal_svg::text(&recorded)), masked(&terminal_svg::text(&now)));
    assert_eq!(was, is, "docs/session.svg is out of date: run scripts/record-session");
    for private in [session.root().to_str().unwrap(), "sk-ant", "/home/", "/tmp/"] {
        assert!(!recorded.contains(private), "{private}");
    }
}
