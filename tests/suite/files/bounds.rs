//! What hostile content may cost: rules, ignore files, loops, transcripts and logs without number.

use crate::env::{Env, HOUR, OTHER, Program, SESSION, names_in, wait_until};
use crate::hostile::assert_bounded;
use serde_json::{Value, json};

/// Patterns that make an automaton with more states than fit anywhere.
fn wide_rules(count: usize) -> Value {
    let rules =
        (0..count).map(|n| json!({"id": format!("r{n}"), "pattern": format!("[01]*1[01]{{{}}}x", 200 + n)}));
    json!({"scan": {"rules": rules.collect::<Vec<_>>()}})
}

#[test]
fn rules_without_number_leave_the_last_findings_in_force_and_are_named() {
    let env = Env::without_breaker();
    env.write("app.toml", "path = \"/home/alice/src\"\n");
    env.start("task", &[]);
    // After the start, whose scan has no limit while the clock stands still.
    for n in 0..8 {
        env.write(&format!("digits-{n}.txt"), "0110100110010110".repeat(60_000));
    }
    env.write(".claude/ralph-config.json", wide_rules(5000).to_string());
    // The limit of the scan passes while the hook runs, however fast or slow it is.
    let clock = env.clock();
    let mut hook = env.stop(SESSION).says("x").call().spawn();
    clock.advance_until(1, "the hook answers", || hook.has_ended());
    let answer = hook.wait().answer();
    assert!(answer.continues().contains("app.toml"), "the last findings count: {answer:?}");
    let told = answer.message.unwrap();
    let too_long = "scan.rules: the rules take too long, so the scan was stopped";
    let too_many = "scan.rules: the last 4900 rules are skipped: at most 100 are used";
    assert!(told.contains(too_long) || told.contains(too_many), "{told}");
    assert!(told.contains("the scan continues at the next turn"), "{told}");
}

#[test]
fn an_ignore_file_with_too_many_patterns_costs_its_folder_and_is_named() {
    let env = Env::without_breaker();
    env.write("app.toml", "path = \"/home/alice/src\"\n")
        .write("deep/er/app.toml", "path = \"/home/alice/src\"\n");
    let wild: String = (0..9600).map(|n| format!("*{n}*x{n}?y\n")).collect();
    env.write("deep/.gitignore", &wild);
    let told = env.start("task", &["--max-iterations", "0"]);
    assert!(told.contains("scan: deep is skipped: its ignore files are too large"), "{told}");
    let answer = env.turn(SESSION, "x");
    assert!(answer.continues().contains("app.toml:1"), "{answer:?}");
    assert!(!answer.continues().contains("deep/er"), "{answer:?}");
    env.write("deep/.gitignore", "*.log\n");
    wait_until("the list is small and its folder scanned", || {
        env.turn(SESSION, "y").continues().contains("deep/er")
    });
}

/// Each list fits by itself; together they would be 256 MB.
#[test]
fn ignore_files_in_folders_without_number_have_a_budget_together() {
    let env = Env::without_breaker();
    let list = format!("{}\n", "n".repeat(1023)).repeat(255);
    env.write("list", &list).write("app.toml", "path = \"/home/alice/src\"\n");
    let folders = || (0..1000).map(|n| format!("d{n:03}"));
    for folder in folders() {
        std::fs::create_dir(env.path(&folder)).unwrap();
        std::fs::hard_link(env.path("list"), env.path(&folder).join(".gitignore")).unwrap();
    }
    let told = env.start("task", &["--max-iterations", "0"]);
    assert!(told.contains("is skipped: its ignore files are too large"), "{told}");
    assert!(told.contains("993 more folders are skipped"), "{told}");
    for turn in 0..3 {
        // A new file has the folder above them all listed again.
        env.write(&format!("new-{turn}.txt"), "x");
        let run = env.stop(SESSION).says(&format!("turn {turn}")).call().run();
        assert_bounded("Stop", &run);
        let answer = run.answer();
        assert!(answer.continues().contains("app.toml"), "{answer:?}");
        assert!(!format!("{answer:?}").contains("the scan continues at the next turn"), "{answer:?}");
    }
    for folder in folders().filter(|folder| folder != "d999") {
        std::fs::remove_dir_all(env.path(&folder)).unwrap();
    }
    env.write("d999/app.toml", "path = \"/home/alice/src\"\n");
    wait_until("there is room for the last one", || env.turn(SESSION, "y").continues().contains("d999/app"));
}

#[test]
fn an_ignore_file_of_the_project_that_is_too_large_is_not_used() {
    let env = Env::without_breaker();
    env.write(".gitignore", "secret?*/\n".repeat(4000)).write("src/app.toml", "path = \"/home/alice/src\"\n");
    let told = env.start("task", &[]);
    assert!(told.contains("scan: the project's ignore files are not used: they are too large"), "{told}");
    assert!(env.turn(SESSION, "x").continues().contains("src/app.toml"));
}

/// Loops of a state file that came with a repository, past and alive.
fn add_foreign_loops(env: &Env, count: usize) {
    env.edit_state(|state| {
        for n in 0..count {
            let how = if n % 2 == 0 { "stopped" } else { "running" };
            state["loops"][format!("foreign-{n}")] = json!({"run_id": format!("foreign-{n}"), "state": how});
        }
    });
}

#[test]
fn loops_without_number_that_are_not_yours_change_nothing() {
    let env = Env::without_breaker();
    env.start("task", &[]);
    env.start_in(OTHER, "another", &[]);
    env.ralph(&["stop", "--session", OTHER]).ok();
    add_foreign_loops(&env, 20_000);
    assert!(env.turn(SESSION, "x").continues().contains("task"));
    let status = env.status();
    let tasks: Vec<_> = status["loops"].as_array().unwrap().iter().map(|run| run["task"].clone()).collect();
    assert_eq!(tasks.len(), 2, "the past one of yours is there: {tasks:?}");
    env.session_start(SESSION, "clear").run();
    let told = env.session_start("new-session", "clear").run().message.unwrap();
    assert_eq!(told.matches("found a loop").count(), 1, "{told}");
    env.at(25 * HOUR).start_in(OTHER, "a third", &[]);
    assert!(env.state()["loops"].as_object().unwrap().len() < 19_600, "old ones leave, some at a time");
    assert_eq!(env.shown(OTHER)["task"], "a third");
}

#[test]
fn a_breaker_that_was_not_used_for_a_month_goes_in_any_project() {
    let env = Env::new();
    env.start("task", &[]);
    for turn in 0..30 {
        env.turn(SESSION, &format!("same {}", turn / 30));
    }
    let records = || names_in(&env.data().join("circuit")).len();
    assert_eq!((env.record(SESSION)["state"].as_str(), records()), (Some("stopped"), 1), "a trip is kept");
    let elsewhere = env.base.join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let start = |hours: i64| {
        let args = ["start", "--session", OTHER, "--replace", "--", "task"];
        env.at(hours * HOUR).call(Program::Ralph).args(&args).cwd(&elsewhere).run().ok();
        records()
    };
    assert_eq!(start(29 * 24), 2, "the trip is younger than a month");
    assert_eq!(start(31 * 24), 1);
    assert!(env.ralph(&["history", "--circuit"]).ok().contains("trip"), "the history keeps it");
}

#[test]
fn a_turn_whose_transcript_is_too_long_to_be_read_is_judged_by_its_end_and_told() {
    let env = Env::without_breaker();
    env.start("task", &["--max-iterations", "0"]);
    let transcript = env.transcript();
    transcript.worked(1);
    env.at(15).stop(SESSION).with(&transcript).says("one").run().continues();
    // A hole in the file, which takes no time to write.
    let file = std::fs::OpenOptions::new().append(true).open(&transcript.path).unwrap();
    file.set_len(file.metadata().unwrap().len() + (2 << 30)).unwrap();
    transcript.raw(b"\n").worked(20).queue(30, "enqueue", "/ralph:status");
    let run = env.at(31).stop(SESSION).with(&transcript).says("two").call().run();
    assert!(run.cost.is_none_or(|cost| cost.read_bytes >> 20 < 600), "{:?}", run.cost);
    let told = run.answer().allows().to_owned();
    assert!(told.contains("MB of this turn's transcript were not read"), "{told}");
    assert!(told.contains("/ralph:status"), "the newest entries count: {told}");
}

#[test]
fn what_killed_starts_of_other_sessions_left_goes_with_the_next_start() {
    let env = Env::new();
    env.start("task", &[]);
    let folders = ["sessions", "circuit"].map(|folder| env.data().join(folder));
    for folder in &folders {
        std::fs::create_dir_all(folder).unwrap();
        let file = std::fs::File::create(folder.join("0-1.json.tmp-new")).unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(120)).unwrap();
    }
    env.start_in(OTHER, "another", &[]);
    for folder in &folders {
        let names = names_in(folder);
        assert!(names.iter().all(|name| !name.contains(".tmp-")), "{names:?}");
    }
}
