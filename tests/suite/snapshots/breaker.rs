//! Each condition of the circuit breaker, and each reason to end a run for its agent: the warning, the status, the end.

use super::{Page, start};
use crate::env::{Answer, Env, Run, SESSION};
use ralph::core::circuit;

/// What an agent does in its nth turn.
type Turn = fn(&Env, i64) -> Answer;

fn says(env: &Env, n: i64, text: &str) -> Answer {
    env.at(n * 10).turn(SESSION, text)
}

/// Each setting, the value that the test gives it, and turns that meet it.
const CONDITIONS: [(&str, &str, Turn); 7] = [
    ("SAME_ERROR", "3", |env, n| says(env, n, &format!("Part {n} is next.\nerror: disk on fire\n"))),
    ("OUTPUT_DECLINE", "70", |env, n| says(env, n, &"words ".repeat(1000 / 10_usize.pow(n as u32 - 1)))),
    ("TEST_ONLY", "3", |env, n| {
        let status = "---RALPH_STATUS---\nSTATUS: IN_PROGRESS\nWORK_TYPE: TESTING\n---END_RALPH_STATUS---";
        says(env, n, &format!("Ran part {n} of the tests.\n{status}"))
    }),
    ("STAGNATION", "3", |env, n| says(env, n, &format!("Thought about part {n} of it, at some length."))),
    ("IDLE", "3", |env, n| {
        let transcript = env.transcript();
        for turn in 1..=n {
            transcript.feedback(turn * 10 - 5).text(turn * 10 - 4, &format!("Hm, part {turn}."));
        }
        env.at(n * 10).stop(SESSION).with(&transcript).says(&format!("Hm, part {n}.")).run()
    }),
    ("REPETITION", "3", |env, n| says(env, n, "I am still looking into it, as before.")),
    ("SAFETY_COMPLETION", "3", |env, n| {
        says(env, n, &format!("Part {n}: all tasks are complete, everything is done. The work is finished."))
    }),
];

#[test]
fn conditions() {
    let keys = circuit::condition::CONDITIONS.iter().map(|condition| condition.name().to_uppercase());
    assert_eq!(CONDITIONS.map(|(setting, ..)| setting.to_owned()).to_vec(), keys.collect::<Vec<_>>());
    let mut page = Page::new();
    for (setting, limit, turn) in CONDITIONS {
        let env = Env::new();
        for (other, ..) in CONDITIONS {
            env.var(&format!("RALPH_CIRCUIT_{other}"), if other == setting { limit } else { "0" });
        }
        start(&env, &[]);
        let title = format!("circuit.{}", setting.to_lowercase());
        for n in 1.. {
            assert!(n < 6, "{setting} does not trip");
            let answer = turn(&env, n);
            let warns = answer.message.as_deref().unwrap_or_default().contains("one more ends the loop");
            if warns {
                page.answer(&env, &format!("{title} {limit}: the warning"), &answer);
                breaker_lines(&mut page, &env, &format!("{title}: status"));
            }
            if answer.block.is_none() {
                page.message(&env, &format!("{title}: the end"), &answer);
                break;
            }
        }
        breaker_lines(&mut page, &env, &format!("{title}: status"));
        page.ralph(&env, &["history", "--circuit"]);
    }
    page.check("breaker");
}

/// Adds what the status says about the breaker.
fn breaker_lines(page: &mut Page, env: &Env, title: &str) {
    let status = env.ralph(&["status", "--session", SESSION]).ok();
    let mut text = String::new();
    let mut is_wanted = false;
    for line in status.lines() {
        // Further lines of a field are indented more.
        if !line.starts_with("   ") {
            is_wanted = ["  Ends", "  Circuit", "  Next", "  Reason", "■", "●"]
                .iter()
                .any(|label| line.starts_with(label));
        }
        if is_wanted {
            text.push_str(&format!("{line}\n"));
        }
    }
    page.section(env, title, &text);
}

/// Adds what a run printed from its first iteration on.
fn iterations(page: &mut Page, env: &Env, title: &str, run: Run) {
    let stdout = run.stdout[run.stdout.find("── iteration").unwrap()..].to_owned();
    page.run(env, title, &Run { stdout, ..run });
}

/// What an agent brings upon itself without the breaker.
#[test]
fn agents_that_fail() {
    let mut page = Page::new();
    let result = r#"printf '%s\n' '{"type":"result","subtype":"success","is_error":true,"result":"Prompt is too long"}'; exit 1"#;
    for (title, script) in [
        ("an error result", result),
        ("an unknown option", "echo \"error: unknown option '--frob'\" >&2; exit 1"),
        ("an exit code", "exit 9"),
        ("a signal", "kill -9 $$"),
        ("not logged in", "echo 'Not logged in · Please run /login' >&2; exit 1"),
        ("output that is no event", "echo 'no json'"),
    ] {
        let env = Env::new();
        let run = env.run_claude(script, &["make the suite green"]).run();
        iterations(&mut page, &env, &format!("ralph run --claude: {title}"), run);
    }
    for (title, script, flags) in [
        ("no change", "true", &[][..]),
        ("no quota", "echo 'Quota exceeded. Check your plan and billing details.' >&2; exit 1", &[]),
        (
            "a usage limit",
            "printf '%s\\n' 'You’ve hit your usage limit. Try again at 5:12 PM.' >&2; exit 1",
            &["--on-limit", "stop"],
        ),
        (
            "lost logs",
            "work; case $n in 1) rm -r ralph/logs; echo x > ralph/logs;; 2) promise COMPLETE;; esac",
            &[],
        ),
        (
            "a check that fails",
            "work; promise COMPLETE",
            &["--verify", "echo '2 tests failed'; exit 3", "--max-iterations", "2"],
        ),
    ] {
        let env = Env::new();
        env.var("TZ", "UTC");
        let flags = [flags, &["make the suite green"]].concat();
        let run = env.run_with(script, &flags).run();
        iterations(&mut page, &env, &format!("ralph run --agent-command: {title}"), run);
    }
    page.check("agents_that_fail");
}
