//! What `ralph monitor` costs while it is left open: its share of a core with ten loops at work.
//!
//! `cargo bench --bench monitor` prints the figure. `RALPH_BENCH_SECONDS` sets for how long it is measured, and
//! `RALPH_BENCH_PROGRAMS` a folder with other programs to measure in place of those just built.
//!
//! Ten projects have a loop each. Every second each agent says something, and one of the loops ends a turn. The share is
//! processor time over wall-clock time, from the system's own count. It fails if that is over the limit.

mod shared;

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    return shared::main("monitor", measure::run);
    #[cfg(not(target_os = "linux"))]
    shared::main("monitor", |_| Ok(true))
}

#[cfg(target_os = "linux")]
mod measure {
    use super::shared::{Outcome, shipped};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{Winsize, tcsetwinsize};
    use std::fs::{self, File, OpenOptions};
    use std::io::{Read, Write};
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    const LOOPS: usize = 10;
    const MAX_SHARE: f64 = 1.0;
    /// The unit of the system's count.
    const TICKS_PER_SECOND: f64 = 100.0;

    pub fn run(out: &mut std::io::StdoutLock) -> Outcome<bool> {
        let mut is_within = true;
        let seconds =
            std::env::var("RALPH_BENCH_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
        let dir = tempfile::Builder::new().prefix("ralph-monitor-").tempdir()?;
        let world = World::new(dir.path())?;
        for flags in [&[][..], &["--all"]] {
            let mut monitor = world.monitor(flags)?;
            // Opening it reads everything once, which is not what it costs to leave it open.
            world.work(Duration::from_secs(3))?;
            let before = processor_seconds(&monitor)?;
            let began = Instant::now();
            world.work(Duration::from_secs(seconds))?;
            let share = (processor_seconds(&monitor)? - before) / began.elapsed().as_secs_f64() * 100.0;
            let verdict = if share > MAX_SHARE { "OVER" } else { "ok" };
            is_within &= share <= MAX_SHARE;
            let name = format!("ralph monitor {}", flags.concat());
            let loops = if flags.is_empty() { "1 of 10 loops" } else { "10 loops" };
            writeln!(
                out,
                "{name:<24} {share:>5.2} % of a core over {seconds}s, {loops}  (limit {MAX_SHARE} %)  {verdict}"
            )?;
            monitor.kill()?;
            monitor.wait()?;
        }
        Ok(is_within)
    }

    struct World {
        base: PathBuf,
    }

    impl World {
        fn new(base: &Path) -> Outcome<World> {
            let world = World { base: base.to_owned() };
            for name in ["home", "data", "config"] {
                fs::create_dir(base.join(name))?;
            }
            for number in 0..LOOPS {
                fs::create_dir(world.project(number))?;
                fs::write(world.transcript(number), "")?;
                let task = format!("task number {number}");
                let mut start = world.command("ralph", number);
                start.args(["start", "--session", &session(number), "--max-iterations", "0", "--", &task]);
                let started = start.stdout(Stdio::null()).status()?;
                if !started.success() {
                    return Err("a loop could not be started".into());
                }
                world.end_turn(number, 0)?;
            }
            Ok(world)
        }

        fn project(&self, number: usize) -> PathBuf {
            self.base.join(format!("project-{number}"))
        }

        fn transcript(&self, number: usize) -> PathBuf {
            self.base.join(format!("{}.jsonl", session(number)))
        }

        fn command(&self, program: &str, number: usize) -> Command {
            let mut command = Command::new(shipped(program));
            command.current_dir(self.project(number)).env_clear();
            for (name, folder) in
                [("HOME", "home"), ("RALPH_DATA_DIR", "data"), ("RALPH_CONFIG_DIR", "config")]
            {
                command.env(name, self.base.join(folder));
            }
            for condition in ["STAGNATION", "REPETITION", "OUTPUT_DECLINE", "IDLE"] {
                command.env(format!("RALPH_CIRCUIT_{condition}"), "0");
            }
            command.env("PATH", "/usr/bin:/bin").env("TERM", "xterm-256color");
            command
        }

        fn end_turn(&self, number: usize, turn: usize) -> Outcome<()> {
            let mut hook = self.command("ralph-stop-hook", number);
            hook.env("CLAUDE_PROJECT_DIR", self.project(number)).stdin(Stdio::piped()).stdout(Stdio::null());
            let mut hook = hook.spawn()?;
            let input = format!(
                r#"{{"session_id":"{}","cwd":"{}","hook_event_name":"Stop","transcript_path":"{}","stop_hook_active":true,"last_assistant_message":"turn {turn} is done"}}"#,
                session(number),
                self.project(number).display(),
                self.transcript(number).display()
            );
            hook.stdin.take().ok_or("no stdin")?.write_all(input.as_bytes())?;
            hook.wait()?;
            Ok(())
        }

        /// Has every agent say something each second, and one of the loops end a turn.
        fn work(&self, span: Duration) -> Outcome<()> {
            let began = Instant::now();
            let mut turn = 0;
            while began.elapsed() < span {
                for number in 0..LOOPS {
                    let mut file = OpenOptions::new().append(true).open(self.transcript(number))?;
                    let said =
                        format!("step {turn}: {}", "looked at a file and changed a line of it. ".repeat(20));
                    writeln!(
                        file,
                        r#"{{"type":"assistant","timestamp":"2026-11-16T08:00:00Z","message":{{"id":"m{turn}","role":"assistant","content":[{{"type":"text","text":"{said}"}}]}}}}"#
                    )?;
                }
                self.end_turn(turn % LOOPS, turn)?;
                turn += 1;
                let next = Duration::from_secs(turn as u64).min(span);
                std::thread::sleep(next.saturating_sub(began.elapsed()));
            }
            Ok(())
        }

        fn monitor(&self, flags: &[&str]) -> Outcome<Child> {
            let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
            grantpt(&ours)?;
            unlockpt(&ours)?;
            tcsetwinsize(&ours, Winsize { ws_row: 50, ws_col: 160, ws_xpixel: 0, ws_ypixel: 0 })?;
            let name = ptsname(&ours, Vec::new())?;
            let open = || OpenOptions::new().read(true).write(true).open(name.to_str().unwrap_or_default());
            let mut command = self.command("ralph", 0);
            command.arg("monitor").args(flags).stdin(open()?).stdout(open()?).stderr(open()?);
            let child = command.spawn()?;
            let mut screen = File::from(ours);
            std::thread::spawn(move || {
                let mut buffer = vec![0; 64 << 10];
                while matches!(screen.read(&mut buffer), Ok(1..)) {}
            });
            Ok(child)
        }
    }

    fn session(number: usize) -> String {
        format!("0f8c1a9e-6b1d-4c5e-9a57-0000000000{number:02}")
    }

    /// Returns the processor time of a process so far.
    fn processor_seconds(child: &Child) -> Outcome<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
        let after_name = stat.rsplit_once(')').ok_or("no name")?.1;
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok());
        let (user, system) = (ticks(11).ok_or("no user time")?, ticks(12).ok_or("no system time")?);
        Ok((user + system) / TICKS_PER_SECOND)
    }
}
