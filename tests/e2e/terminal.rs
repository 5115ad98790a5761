//! `ralph run` on a real terminal, typed into a shell with job control: the line that is kept up to date, Enter,
//! Ctrl-C, Ctrl-Z, and a run in the background. The agents are scripts, so no client is needed.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::clock::Clock;
use crate::ralph::SOON;
use crate::tmux::Screen;

/// When the clock begins: 2026-11-16T08:00:00Z.
const T0: i64 = 1_794_816_000;

/// What every agent has: its number, the prompt out of the way, and the client's events.
const PREAMBLE: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo '2.1.325 (Claude Code)'; exit; }
n=$(( $(cat ../n 2>/dev/null || echo 0) + 1 )); echo $n > ../n
cat > /dev/null; echo "$n" >> work.txt
text() { printf '{"type":"assistant","message":{"content":[{"type":"text","text":"%s"}]},"session_id":"s"}\n' "$1"; }
result() { printf '{"type":"result","subtype":"success","is_error":false,"result":"%s","total_cost_usd":0.5,"usage":{"output_tokens":5},"session_id":"s"}\n' "$1"; exit 0; }
limit() { printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s},"session_id":"s"}\n' "$1"
  printf '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"limit","session_id":"s"}\n'; exit 1; }
go() { until [ -e ../go ]; do sleep 0.05; done; }
complete='<promise>COMPLETE</promise>'
"#;

/// A person at a shell in a project, with a clock that stands still unless the test moves it.
struct Terminal {
    screen: Screen,
    folder: TempDir,
    clock: Clock,
}

impl Terminal {
    /// With this agent, as `$AGENT`, on a screen so wide.
    fn open(columns: u16, variable: &str, agent: &str) -> Option<Terminal> {
        if !Screen::available() {
            return None;
        }
        let folder = tempfile::Builder::new().prefix("ralph-e2e-").tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["home", "project", "data", "config"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let path = root.join("agent");
        fs::write(&path, format!("{PREAMBLE}{agent}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let clock = Clock::new(root.join("clock"), T0 * 1000);
        let at = |name: &str, path: PathBuf| format!("{name}={}", path.display());
        let mut words: Vec<OsString> = ["env", "-i", "TERM=xterm-256color", "LANG=C.UTF-8", variable]
            .into_iter()
            .filter(|word| !word.is_empty())
            .map(Into::into)
            .collect();
        words.extend(
            [
                "PATH=/usr/bin:/bin".into(),
                "PS1=shell> ".into(),
                "RALPH_DELAY=0".into(),
                "AGENT=--claude ../agent".into(),
                format!("RALPH_NOW={}", clock.variable().display()),
                at("RALPH", env!("CARGO_BIN_EXE_ralph").into()),
                at("HOME", root.join("home")),
                at("RALPH_DATA_DIR", root.join("data")),
                at("RALPH_CONFIG_DIR", root.join("config")),
            ]
            .map(|word: String| OsString::from(word)),
        );
        words.extend(["bash", "--norc", "--noprofile", "-i"].map(Into::into));
        let screen = Screen::open(&root.join("project"), (columns, 30), &words);
        screen.wait_for("shell>", SOON);
        Some(Terminal { screen, folder, clock })
    }

    fn run(&self, flags: &str) {
        self.screen.type_line(&format!("$RALPH run $AGENT {flags} x"));
    }

    fn go(&self) {
        fs::write(self.folder.path().join("go"), "").unwrap();
    }

    fn sees(&self, part: &str) -> String {
        self.screen.wait_for(part, SOON)
    }

    /// The last line of the screen that is not empty.
    fn last_line(&self) -> String {
        let text = self.screen.visible(false);
        text.trim_end().lines().last().unwrap_or_default().to_owned()
    }

    /// The last line, as soon as it is so.
    fn last_line_when(&self, so: impl Fn(&str) -> bool) -> String {
        self.screen.wait_until(|text| so(text.trim_end().lines().last().unwrap_or_default()), SOON);
        self.last_line()
    }

    /// The run is over with this code, and of the line that was kept up to date nothing is left.
    fn ended(&self, code: i32) -> String {
        self.last_line_when(|line| line == "shell>");
        self.screen.type_line("echo \"code $?.\"");
        let text = self.sees(&format!("code {code}."));
        let debris = [" silent", " elapsed", " left", "circuit ok", "idle 1", "^"];
        let left: Vec<&str> =
            text.lines().filter(|line| debris.iter().any(|part| line.contains(part))).collect();
        assert_eq!(left, [""; 0], "{text}");
        text
    }
}

/// Two iterations, of which the second is slow: what the first one cost is known in it.
const TWO_STEPS: &str = "[ $n = 1 ] && { text 'the first step'; result one; }; text 'on it'; go; text 'at last'; result $complete";

#[test]
fn one_line_is_kept_up_to_date_and_leaves_nothing() {
    for (columns, variable) in [(120, ""), (80, "NO_COLOR=1")] {
        let Some(terminal) = Terminal::open(columns, variable, TWO_STEPS) else { return };
        terminal.run("");
        terminal.sees("\non it");
        terminal.clock.advance(1);
        let first = terminal.last_line_when(|line| line.starts_with("Ralph 2/50 · "));
        for part in ["Runtime: 0.0h/", " · $0.50 · ", " · idle 1/5"] {
            assert!(first.contains(part), "{columns}, {part}: {first}");
        }
        let (elapsed, silence) = match columns {
            80 => (" · 2s", " · 2s silent"),
            _ => (" · 2s elapsed", " · last output 2s ago"),
        };
        terminal.clock.advance(1);
        let later = terminal.last_line_when(|line| line.ends_with(silence));
        assert!(later.contains(elapsed), "{later}");
        let shown = terminal.screen.visible(true);
        assert_eq!(shown.matches("Ralph 2/50").count(), 1, "{shown}");
        assert_eq!(shown.contains('\u{1b}'), variable.is_empty(), "{shown:?}");
        terminal.go();
        let text = terminal.ended(0);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let at =
            lines.iter().position(|line| *line == "── iteration 2 of 50 ──").expect("the second iteration");
        assert_eq!(lines[at + 1..at + 3], ["on it", "at last"], "{text}");
        assert!(lines[at + 3].starts_with("── iteration 2 complete · "), "{text}");
    }
}

/// The seconds that are left of a wait, as the last line shows them.
fn left(line: &str) -> Option<u32> {
    line.strip_suffix("s left (Enter tries now)")?.rsplit(' ').next()?.parse().ok()
}

#[test]
fn a_wait_is_counted_down_and_enter_ends_it() {
    // The limit ends in twenty seconds, and half a minute is added for the clocks of others.
    let limit = T0 + 20;
    let agent = format!("[ $n = 1 ] && limit {limit}; [ $n = 2 ] && result one; result $complete");
    let Some(terminal) = Terminal::open(100, "", &agent) else { return };
    terminal.run("--calls-per-hour 2");
    terminal.last_line_when(|line| left(line) == Some(50));
    terminal.clock.advance(3);
    terminal.last_line_when(|line| left(line) == Some(47));
    terminal.screen.key("Enter");
    terminal.sees("── iteration 1 ok");
    // Two agents were started, and two are the user's own limit.
    let hour = terminal.last_line_when(|line| line.ends_with("left (Enter tries now)"));
    assert!(hour.starts_with("Ralph: limit of 2 iterations per hour reached; "), "{hour}");
    terminal.screen.key("Enter");
    let text = terminal.ended(0);
    assert_eq!(text.matches("── iteration 1 of 50 ──").count(), 2, "the limit was no iteration: {text}");
    assert!(text.contains("Iterations:  2 / 50"), "{text}");
}

/// It ends when it may, and no earlier: the clock stands still, and with it the time until it is killed.
const DEAF: &str =
    "trap 'text asked; go; text \"still here\"; exit 1' TERM; text 'at work'; while :; do sleep 0.05; done";

#[test]
fn ctrl_c_asks_and_a_second_one_does_not() {
    let Some(terminal) = Terminal::open(100, "", DEAF) else { return };
    terminal.run("");
    terminal.sees("\nat work");
    terminal.screen.key("C-c");
    terminal.sees("\nasked");
    terminal.go();
    let text = terminal.ended(130);
    assert!(text.contains("\nstill here\n"), "{text}");
    assert!(text.contains("INTERRUPTED (code 130)") && text.contains("Ctrl-C"), "{text}");

    let Some(terminal) = Terminal::open(100, "", DEAF) else { return };
    terminal.run("");
    terminal.sees("\nat work");
    terminal.screen.key("C-c");
    terminal.sees("\nasked");
    terminal.screen.key("C-c");
    let text = terminal.ended(130);
    assert!(!text.contains("still here"), "{text}");
}

#[test]
fn ctrl_c_ends_a_wait_at_once() {
    let Some(terminal) = Terminal::open(100, "", &format!("limit {}", T0 + 3600)) else { return };
    terminal.run("");
    terminal.last_line_when(|line| line.ends_with("1h left (Enter tries now)"));
    terminal.screen.key("C-c");
    terminal.sees("INTERRUPTED (code 130)");
    let text = terminal.ended(130);
    assert!(text.contains("Iterations:  0 / 50"), "{text}");
}

#[test]
fn ctrl_z_stops_the_heart_too() {
    let agent = "text 'at work'; go; result $complete";
    let Some(terminal) = Terminal::open(100, "", agent) else { return };
    terminal.run("--heartbeat-interval 3 --heartbeat-threshold 2 --startup-grace-period 0");
    terminal.sees("\nat work");
    terminal.screen.key("C-z");
    terminal.sees("Stopped");
    // Longer than a stall takes.
    terminal.clock.advance(7);
    terminal.screen.type_line("fg");
    terminal.last_line_when(|line| line.starts_with("Ralph 1/50") && line.contains("7s"));
    terminal.go();
    let text = terminal.sees("COMPLETE (code 0)");
    assert!(!text.contains("event=") && !text.contains("No agent output"), "{text}");
}

#[test]
fn a_run_in_the_background_continues() {
    let agent = "text 'at work'; go; result $complete";
    let Some(terminal) = Terminal::open(100, "", agent) else { return };
    terminal.screen.type_line("$RALPH run $AGENT x &");
    terminal.sees("at work");
    terminal.screen.type_line("echo somebody types");
    terminal.sees("\nsomebody types");
    terminal.go();
    let text = terminal.sees("COMPLETE (code 0)");
    assert!(!text.contains("Stopped") && !text.contains("Ralph 1/50"), "the line is the shell's: {text}");

    // From the foreground, where it listened to the keyboard.
    let Some(terminal) = Terminal::open(100, "", agent) else { return };
    terminal.run("");
    terminal.sees("\nat work");
    terminal.screen.key("C-z");
    terminal.sees("Stopped");
    terminal.screen.type_line("bg");
    terminal.screen.type_line("echo somebody types");
    terminal.go();
    let text = terminal.sees("COMPLETE (code 0)");
    assert!(text.contains("\nsomebody types"), "the shell's words are not ours: {text}");
}
