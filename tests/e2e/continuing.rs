//! How a turn continues in the real client: by context where its version takes that, by a block elsewhere.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::client::{Client, Session};
use crate::messages_api::{Api, Reply};
use crate::ralph::{SOON, plugin, session_of, the_loop, working};
use crate::tmux::{SIZES, Screen};

const DONE: &str = "All of it is there.\n\n<promise>COMPLETE</promise>";
const PROMPT: &str = "Ralph: 1 of 50 iterations done";

/// How the client introduces a prompt, and calls it on the screen.
const CONTEXT: &str = "Stop hook additional context: ";
const BLOCK: &str = "Stop hook feedback:\n";

fn script() -> Vec<Reply> {
    let mut script: Vec<Reply> = working("The first part is there.").into();
    script.push(Reply::text(DONE));
    script
}

/// The plugin in a copy whose Stop hook is not told the client's version.
fn plugin_without_version(folder: &Path) -> PathBuf {
    let copy = folder.join("plugin without version");
    let copied = Command::new("cp").arg("-a").arg(plugin()).arg(&copy).status().unwrap();
    assert!(copied.success());
    let hook = copy.join("bin/ralph-stop-hook");
    let program = copy.join("bin/the-stop-hook");
    fs::rename(&hook, &program).unwrap();
    let text = format!("#!/bin/sh\nunset AI_AGENT\nexec -a ralph-stop-hook '{}' \"$@\"\n", program.display());
    // The program acts by the name it is called by; `exec -a` is not in every sh.
    let text = text.replace("#!/bin/sh", "#!/bin/bash");
    fs::write(&hook, text).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    copy
}

fn session_without_version(claude: &Path, api: &Api) -> Session {
    let session = Session::new(claude, api).allow("Bash");
    let plugin = plugin_without_version(session.root());
    session.plugin(&plugin)
}

/// Runs a loop of two turns with `-p`; returns what the agent was shown in its second turn.
fn printed(session: &Session, api: &Api) -> String {
    // The older clients print nothing of what a hook tells the user.
    session.print("/ralph:start make it");
    assert_eq!(the_loop(session)["outcome"], "complete");
    assert_eq!(the_loop(session)["iteration"], 2);
    let requests = api.requests();
    assert_eq!(requests.len(), 3, "two requests in the first turn, one in the second");
    requests[2].text()
}

#[test]
fn printed_by_context_the_agent_reads_the_prompt_once() {
    for claude in [Client::find(), Client::find_version("2.1.163")] {
        let Some(claude) = claude else { return };
        let api = Api::start(script());
        let text = printed(&session_of(&claude, &api), &api);
        assert_eq!(text.matches(&format!("{CONTEXT}{PROMPT}")).count(), 1, "{text}");
        assert_eq!(text.matches(PROMPT).count(), 1, "{text}");
        assert!(!text.contains("blocking error") && !text.contains(BLOCK), "{text}");
    }
}

#[test]
fn printed_by_a_block_where_the_version_is_too_old_or_not_told() {
    let (Some(new), Some(old)) = (Client::find(), Client::find_version("2.1.162")) else { return };
    let api = Api::start(script());
    let text = printed(&session_without_version(&new, &api), &api);
    assert!(text.contains(&format!("{BLOCK}{PROMPT}")) && !text.contains(CONTEXT), "{text}");
    let api = Api::start(script());
    let text = printed(&session_of(&old, &api), &api);
    assert!(text.contains(&format!("{BLOCK}{PROMPT}")) && !text.contains(CONTEXT), "{text}");
}

#[test]
fn a_long_task_arrives_whole_and_the_next_turn_is_short_again() {
    let Some(claude) = Client::find() else { return };
    let mut script: Vec<Reply> = vec![Reply::text("<promise>BLOCKED:no key</promise>")];
    script.extend(working("The first part is there."));
    script.extend(working("The second part is there."));
    script.push(Reply::text(DONE));
    let api = Api::start(script);
    let session = session_of(&claude, &api);
    let task = format!("begin {}end", "x ".repeat(6_000));
    let output = session.print(&format!("/ralph:start {task}"));
    // Resumed in a terminal, so that the agent has not read the task when its turn ends.
    let id = output.session_id();
    fs::remove_file(session.project().join("ralph/blocked.txt")).unwrap();
    crate::ralph::ralph(&session, &["start", "--resume", "--session", id]);
    session.resume(id, "continue");

    let texts: Vec<_> = api.requests().iter().map(|request| request.last_user_text()).collect();
    let whole = texts.iter().find(|text| text.contains("Ralph: 2 of 50 iterations done")).unwrap();
    assert!(whole.contains(&task) && whole.contains(BLOCK), "{whole}");
    let next = texts.iter().find(|text| text.contains("Ralph: 3 of 50 iterations done")).unwrap();
    assert!(next.contains(CONTEXT) && !next.contains(&task), "{next}");
}

/// Returns what the screen shows of the turn that continued.
fn turn(screen: &str) -> String {
    let lines = screen.lines().map(str::trim_end);
    let turn = lines.skip_while(|line| !line.contains("The first part is there."));
    let turn = turn.take_while(|line| !line.contains("All of it is there."));
    turn.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Runs the same loop on a screen, in no time; returns all that was shown.
fn shown(session: Session, size: (u16, u16)) -> String {
    let session = session.env("RALPH_NOW", "2026-01-01T00:00:00Z");
    let screen = Screen::start_sized(&session, &[], size);
    screen.type_line("/ralph:start make it");
    screen.wait_for("Ralph ended (complete)", SOON)
}

/// The page has the screen as it was before, by a block, and as it is by context.
#[test]
fn on_the_screen_nothing_is_labelled_an_error() {
    let [Some(new), Some(old), Some(older)] =
        [Client::find(), Client::find_version("2.1.163"), Client::find_version("2.1.162")]
    else {
        return;
    };
    if !Screen::available() {
        return;
    }
    let mut page = String::new();
    for (name, claude, way) in [
        ("2.1.325", &new, CONTEXT),
        ("2.1.163", &old, CONTEXT),
        ("2.1.162", &older, BLOCK),
        ("2.1.325, which does not tell its version", &new, BLOCK),
    ] {
        for size in SIZES {
            let api = Api::start(script());
            let session = match name.contains("does not tell") {
                false => session_of(claude, &api),
                true => session_without_version(claude, &api),
            };
            let whole = shown(session, size);
            assert_eq!(whole.contains("error"), way == BLOCK, "{name}: {whole}");
            page.push_str(&format!("=== {name}, {} × {}\n{}\n\n", size.0, size.1, turn(&whole)));
        }
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("screens");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("continuing", page));
}
