//! `ralph logs`, `ralph history` of one run and of silences, `ralph archive`, `ralph init`, `ralph start --import`.

use super::{Page, replace};
use crate::env::{DONE, Env, OTHER, Program, SESSION};
use crate::monitor::worlds;
use ralph::core::outcome::OUTCOMES;
use serde_json::json;

fn logs(page: &mut Page, env: &Env, args: &[&str]) {
    let run = env.call(Program::Ralph).args(&["logs"]).args(args).var("TZ", "UTC").run();
    page.run(env, &format!("ralph logs {}", args.join(" ")), &run);
}

#[test]
fn of_runs_and_sessions() {
    let mut page = Page::new();
    let env = Env::new();
    logs(&mut page, &env, &[]);
    page.ralph(&env, &["history", "nothing"]).ralph(&env, &["history", "--stalls"]);
    let script = "echo \"looking at part $n\"; work; [ $n = 3 ] && promise COMPLETE; [ $n = 1 ] && { echo 'error: no disk'; exit 3; }";
    env.run_with(script, &["--verify", "true", "--no-tasks", "make the suite green"]).run();
    logs(&mut page, &env, &[]);
    logs(&mut page, &env, &["--iteration", "2"]);
    logs(&mut page, &env, &["--raw"]);
    for args in [&["nothing"][..], &["../x"], &["--iteration", "7"]] {
        logs(&mut page, &env, args);
    }
    let run_id = env.history()[0]["run_id"].as_str().unwrap().to_owned();
    page.run(&env, "ralph history RUN", &env.ralph(&["history", &run_id]));

    let env = Env::new();
    let transcript = env.transcript();
    env.at(10).start("make the suite green", &["--verify", "test -e done.txt"]);
    let call = json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "cargo test"}});
    transcript.text(20, "first I look\naround").entry(
        21,
        "assistant",
        json!({"message": {"content": [call]}}),
    );
    env.at(30).stop(SESSION).with(&transcript).says("first I look").run().continues();
    env.at(31).guidance(&["forbid", "push to main"]).ok();
    transcript.text(40, "second turn");
    env.at(50).stop(SESSION).with(&transcript).says(DONE).run().continues();
    env.at(55).ralph(&["pause"]).ok();
    env.at(60).ralph(&["start", "--resume", "--session", SESSION]).ok();
    env.write("done.txt", "");
    transcript.text(70, "third turn");
    env.at(80).stop(SESSION).with(&transcript).says(DONE).run().ended("complete");
    logs(&mut page, &env, &[]);
    logs(&mut page, &env, &["--iteration", "2"]);
    let run_id = env.history()[0]["run_id"].as_str().unwrap().to_owned();
    page.run(&env, "ralph history RUN: a session", &env.ralph(&["history", &run_id]));
    page.check("logs");
}

#[test]
fn of_a_project() {
    let mut page = Page::new();
    archive(&mut page);
    init(&mut page);
    import(&mut page);
    page.check("archive_init_import");
}

fn archive(page: &mut Page) {
    let env = Env::named("shop");
    env.ralph(&["init", "--name", "Shop"]).ok();
    let stories = json!([
        {"id": "US-1", "title": "Basket", "passes": true, "reviewStatus": "approved", "reviewCount": 1},
        {"id": "US-2", "title": "Pay | refund", "passes": false, "reviewStatus": "changes_requested", "reviewCount": 2, "reviewFeedback": "Refunds are missing"},
    ]);
    let tasks = json!({"project": "Shop", "branchName": "ralph/shop", "description": "A shop", "userStories": stories});
    env.write("ralph/tasks.json", tasks.to_string()).write("ralph/progress.txt", "learned\n");
    let header = "iteration,mode,duration_seconds,commit_hash,stories_complete,stories_total,stuck_count,timestamp,outcome,cost_usd,tokens,attempts,other_seconds";
    let rows = "1,implement,120,abc,0,2,0,2026-11-16T07:00:00Z,,,,1,0\n2,review,60,,1,2,1,2026-11-16T07:02:00Z,,,,1,0\n";
    env.write("ralph/logs/summary.csv", format!("{header}\n{rows}"));
    env.start("make the suite green", &[]);
    env.at(10).turn(SESSION, "x\n<promise>BLOCKED:no key</promise>").ended("blocked");
    page.ralph(env.at(60), &["archive", "--label", "first try"]);
    page.section(&env, "summary.md", &env.read("ralph-archive/2026-11-16-first-try/summary.md"));
    page.ralph(&env, &["archive"]).ralph(&env, &["archive", "--label", ".."]);
    let env = Env::new();
    env.write("ralph/tasks.json", "{\"userStories\": []}");
    let archive = format!("'{}' archive 2>&1; promise COMPLETE", Program::Ralph.path());
    let run = env.run_with(&archive, &["x"]).run();
    let said: Vec<&str> =
        run.stdout.lines().filter(|line| line.contains("error: ") || line.contains("hint: ")).collect();
    page.section(&env, "ralph archive: a run is active", &said.join("\n"));
}

fn init(page: &mut Page) {
    let env = Env::new();
    env.write("ralph/prd.md", "my own words");
    page.ralph(&env, &["init", "--name", "Shop"]).ralph(&env, &["init", "--name", " "]);
    page.ralph(&env, &["init", "--force"]);
    let env = Env::new();
    env.write("ralph", "a file");
    page.run(&env, "ralph init: a file in the way", &env.ralph(&["init"]));
    let env = Env::new();
    std::os::unix::fs::symlink(&env.base, env.path("ralph")).unwrap();
    page.run(&env, "ralph init: a link in the way", &env.ralph(&["init"]));
}

fn import(page: &mut Page) {
    const FILE: &str = ".claude/ralph-loop.local.md";
    let start = ["start", "--session", SESSION, "--import"];
    let file = |iteration: u64, most: u64, promise: &str, session: &str, prompt: &str| {
        format!(
            "---\nactive: true\niteration: {iteration}\nsession_id: {session}\nmax_iterations: {most}\n\
             completion_promise: {promise}\nstarted_at: \"2026-11-15T22:30:00Z\"\n---\n\n{prompt}\n"
        )
    };
    let good = file(2, 9, "null", "", "Build it");
    for (title, text) in [
        ("a loop of the plugin", file(7, 20, "\"ALL DONE\"", SESSION, "Build the API.")),
        ("no promise and no limit", file(61, 0, "null", OTHER, "Build it")),
        ("unknown fields", good.replace("active: true", "active: false\nmodel: opus")),
        ("no front matter", "Build it".into()),
        ("a value that is no number", good.replace("max_iterations: 9", "max_iterations: many")),
        ("a line that is no field", good.replace("iteration: 2\n", "iteration two\n")),
        ("a promise with a tag", good.replace("null", "\"<promise>x</promise>\"")),
        ("no end of the front matter", "---\nactive: true\n".into()),
        ("no prompt", good.replace("Build it", "")),
        ("a long prompt", good.replace("Build it", &"x".repeat(20_001))),
        ("a limit that is reached", file(21, 20, "null", "", "Build it")),
    ] {
        let env = Env::new();
        env.write(FILE, text);
        page.run(&env, &format!("ralph start --import: {title}"), &env.ralph(&start));
    }
    let env = Env::new();
    page.run(&env, "ralph start --import: nothing there", &env.ralph(&start));
    env.write(FILE, good);
    page.run(&env, "ralph start --import: no session", &env.ralph(&["start", "--import"]));
    page.run(
        &env,
        "ralph start: beside a loop of the plugin",
        &env.ralph(&["start", "--session", SESSION, "ours"]),
    );
    page.run(&env, "ralph start --import: a loop runs", &env.ralph(&start));
}

#[test]
fn of_a_past_run() {
    let mut page = Page::new();
    let env = worlds::busy();
    page.run(&env, "ralph history", &env.ralph(&["history"]));
    page.run(&env, "ralph history RUN", &env.ralph(&["history", worlds::PAST]));
    page.run(
        &env,
        "ralph logs RUN",
        &env.call(Program::Ralph).args(&["logs", worlds::PAST]).var("TZ", "UTC").run(),
    );
    let report = env.ralph(&["report", worlds::PAST, "--markdown"]).ok();
    page.section(
        &env,
        "ralph report RUN --markdown",
        &replace(&report, r"`[^`]*/project`", "`[base]/project`"),
    );
    page.check("past_run");
}

/// The headline of each outcome in a report, and what it says that needs the user.
#[test]
fn reports() {
    let mut page = Page::new();
    let env = Env::new();
    for (index, (outcome, name, ..)) in OUTCOMES.into_iter().enumerate() {
        let run_id = format!("{index:032x}");
        let started = env.started(&run_id, -3600, "make the suite green");
        let iteration = worlds::iteration(1, -3000, 300.0, name);
        let ended = worlds::ended(-2400, name, &format!("the reason of {outcome}"));
        env.add_events(&run_id, &[started, iteration, ended]);
        let report = env.ralph(&["report", &run_id, "--markdown"]).ok();
        let part = |from: &str, to: &str| {
            let rest = &report[report.find(from).unwrap()..];
            rest[..rest.find(to).unwrap_or(rest.len())].trim_end().to_owned()
        };
        let text = [
            part("## Ralph", "```"),
            part("### What needs you", "### Evidence"),
            part("### What next", "\nRun `"),
        ];
        page.section(&env, name, &text.join("\n\n").replace(&run_id[..8], "[id]"));
    }
    page.check("report_outcomes");
}
