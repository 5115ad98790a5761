//! What only a terminal shows: a status that stays up to date, and how far something is.

use crate::env::{Env, MAX_WAIT, Program, SESSION, wait_for, wait_until, write_program};
use std::fs::File;
use std::io::{Read, Write};
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

/// A program on a terminal, and everything it has written there.
struct OnTerminal {
    child: Child,
    keyboard: File,
    written: Receiver<Vec<u8>>,
    text: String,
}

impl OnTerminal {
    fn start(env: &Env, args: &[&str]) -> OnTerminal {
        let (child, keyboard) = env.call(Program::Ralph).args(args).var("TERM", "xterm").spawn_on_terminal();
        let (sender, written) = channel();
        let mut screen = keyboard.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The other side is closed once the program has ended.
            while let Ok(count @ 1..) = screen.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        OnTerminal { child, keyboard, written, text: String::new() }
    }

    /// Waits until this was written.
    fn until(&mut self, part: &str) {
        let deadline = Instant::now() + MAX_WAIT;
        while !self.text.contains(part) {
            let left = deadline.saturating_duration_since(Instant::now());
            let more = self.written.recv_timeout(left);
            let more = more.unwrap_or_else(|_| panic!("no {part:?} on the terminal:\n{:?}", self.text));
            self.text.push_str(&String::from_utf8_lossy(&more));
        }
    }

    /// Waits for its end and returns everything that it wrote.
    fn end(mut self) -> (Option<i32>, String) {
        let code = wait_for("its end", || self.child.try_wait().unwrap()).code();
        let deadline = Instant::now() + MAX_WAIT;
        loop {
            match self.written.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(more) => self.text.push_str(&String::from_utf8_lossy(&more)),
                Err(RecvTimeoutError::Disconnected) => return (code, self.text),
                Err(RecvTimeoutError::Timeout) => panic!("the terminal stays open:\n{:?}", self.text),
            }
        }
    }
}

#[test]
fn a_watched_status_follows_the_loop_and_gives_the_screen_back() {
    let leave = "\u{1b}[?1049l";
    for (key, name) in [(&b"q"[..], "q"), (b"\x03", "Ctrl-C")] {
        let env = Env::new();
        env.start("the task", &["--max-iterations", "9"]);
        let mut watch = OnTerminal::start(&env, &["status", "--watch"]);
        watch.until("9 iterations left");
        watch.until("q quits");
        assert!(watch.text.contains("\u{1b}[?1049h"), "a screen of its own");
        env.at(10).turn(SESSION, "x").continues();
        watch.until("8 iterations left");
        watch.keyboard.write_all(key).unwrap();
        let (code, text) = watch.end();
        assert_eq!(code, Some(0), "{name}");
        assert!(text.ends_with(leave) && text.contains("\u{1b}[?25h"), "{name}: {text:?}");
    }
    let env = Env::new();
    env.start("the task", &[]);
    let mut watch = OnTerminal::start(&env, &["status", "--watch"]);
    watch.until("the task");
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&watch.child),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    assert!(watch.end().1.ends_with(leave), "by a signal too");
}

#[test]
fn watching_without_a_terminal_is_refused() {
    let refused = Env::new().ralph(&["status", "--watch"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(64), ""));
    assert!(refused.stderr.contains("error: --watch needs a terminal\nhint: "), "{}", refused.stderr);
    let both = Env::new().ralph(&["status", "--watch", "--json"]);
    assert_eq!(both.code, Some(64), "{both:?}");
}

/// Puts a Claude Code on `PATH` that answers once the test creates `go`.
fn slow_client(env: &Env) {
    let bin = env.base.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let script = "#!/bin/sh\necho x >> ../asked\nuntil [ -e ../go ]; do sleep 0.02; done\necho '2.1.325 (Claude Code)'\n";
    write_program(&bin.join("claude"), script);
    env.var("PATH", &format!("{}:/usr/bin:/bin", bin.display()));
}

#[test]
fn something_slow_shows_a_line_on_a_terminal_and_erases_it() {
    let env = Env::new();
    slow_client(&env);
    let mut doctor = OnTerminal::start(&env, &["doctor", "--quick"]);
    doctor.until("checking the installation…");
    std::fs::write(env.base.join("go"), "").unwrap();
    let (_, text) = doctor.end();
    let (before, after) = text.rsplit_once("checking the installation…").unwrap();
    assert!(before.ends_with("\r\u{1b}[K") && after.starts_with("\r\u{1b}[K"), "{text:?}");
    // These two wait for the client as long as a third one, which began later and shows the line.
    std::fs::remove_file(env.base.join("go")).unwrap();
    let asked = || std::fs::read_to_string(env.base.join("asked")).map_or(0, |text| text.lines().count());
    let before = asked();
    let json = OnTerminal::start(&env, &["doctor", "--quick", "--json"]);
    let piped = env.call(Program::Ralph).args(&["doctor", "--quick"]).spawn();
    wait_until("both wait for the client", || asked() == before + 2);
    let mut shown = OnTerminal::start(&env, &["doctor", "--quick"]);
    shown.until("checking the installation…");
    std::fs::write(env.base.join("go"), "").unwrap();
    let json = json.end().1;
    assert!(!json.contains("checking the installation"), "{json:?}");
    let piped = piped.wait();
    assert!(!piped.stderr.contains("checking the installation"), "{}", piped.stderr);
    shown.end();
}
