//! Programs that a repository brings: none of them is ever taken for one of the system's.

use crate::env::{DONE, Env, Program, SESSION, copy_program, write_program};
use std::fs;

/// Everything that we, our scripts and our shells start by a bare name.
const NAMES: [&str; 16] = [
    "git", "claude", "sh", "docker", "bash", "kill", "ps", "sleep", "cat", "tr", "grep", "env", "true",
    "echo", "test", "setsid",
];

/// Ways in which `PATH` leads into the project.
const PATHS: [&str; 4] = [
    ":/usr/local/bin:/usr/bin:/bin",
    ".:/usr/local/bin:/usr/bin:/bin",
    "./node_modules/.bin:/usr/local/bin:/usr/bin:/bin",
    "",
];

/// Returns a project that brings its own programs, which note that they ran.
fn hostile() -> Env {
    let env = Env::git();
    fs::create_dir_all(env.path("node_modules/.bin")).unwrap();
    let script = format!("#!/bin/sh\necho \"$0 $*\" >> {}\n", env.base.join("planted").display());
    write_program(&env.path("git"), &script);
    for folder in ["", "node_modules/.bin/"] {
        for name in NAMES {
            let path = env.path(&format!("{folder}{name}"));
            if !path.exists() {
                copy_program(&env.path("git"), &path);
            }
        }
    }
    env
}

fn planted(env: &Env) -> String {
    fs::read_to_string(env.base.join("planted")).unwrap_or_default()
}

/// Runs everything that starts a program, with this `PATH`.
fn use_everything(env: &Env) {
    let home = env.base.join("home");
    // The client is where its installer puts it, and in no folder of `PATH`.
    fs::create_dir_all(home.join(".local/bin")).unwrap();
    write_program(&home.join(".local/bin/claude"), "#!/bin/sh\necho '2.1.325 (Claude Code)'\n");
    env.session_start(SESSION, "startup").run();
    env.start("the task", &["--verify", "true; cat /dev/null; ps; exit 1", "--notify", "sleep 0"]);
    env.turn(SESSION, DONE);
    env.ralph(&["stop", "--session", SESSION]).ok();
    // What is missing is waited for.
    env.real_time();
    env.ralph(&["scan"]);
    env.ralph(&["doctor"]);
    env.ralph(&["doctor", "--container", "box"]);
    env.ralph(&["install"]);
    env.ralph(&["run", "x"]);
    env.ralph(&["run", "--container", "box", "x"]);
    env.ralph(&["run", "--sandbox", "box", "x"]);
    env.ralph(&["init"]).ok();
    let stop = format!(
        r#"printf '{{"session_id":"{SESSION}","hook_event_name":"Stop","cwd":"%s"}}' "$PWD" | {}"#,
        Program::StopHook.path()
    );
    let run = env.run_with(&format!("{stop}; work; promise COMPLETE"), &["--verify", "true", "x"]).run();
    assert!(run.stdout.contains("iteration 1"), "the run was one: {run:?}");
}

#[test]
fn a_program_in_the_project_is_never_taken_for_the_systems() {
    std::thread::scope(|scope| {
        for path in PATHS {
            scope.spawn(move || {
                let env = hostile();
                env.var("PATH", path);
                use_everything(&env);
                assert_eq!(planted(&env), "", "PATH={path:?}");
            });
        }
    });
}

#[test]
fn a_path_that_the_user_names_is_run() {
    let env = Env::new();
    write_program(&env.path("agent.sh"), "#!/bin/sh\ncat > /dev/null\necho '<promise>COMPLETE</promise>'\n");
    let run = env.var("PATH", ".:/usr/bin:/bin").ralph(&["run", "--agent-command", "./agent.sh", "x"]);
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn the_doctor_names_the_entries_of_path_that_are_not_used() {
    let env = Env::new();
    let told = env.var("PATH", "./node_modules/.bin:/usr/bin:/bin").ralph(&["doctor", "--quick"]).stdout;
    assert!(told.contains("'./node_modules/.bin'"), "{told}");
}
