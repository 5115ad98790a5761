//! The support itself: what it promises to the other tests, without the plugin.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{Client, Session};
use crate::messages_api::{Api, Reply};
use crate::ralph::SOON;
use crate::tmux::Screen;

#[test]
fn a_printed_run_uses_a_tool_and_answers() {
    let Some(claude) = Client::find() else { return };
    let write = json!({"command": "echo made > made.txt; cat made.txt", "description": "write a file"});
    let api = Api::start(vec![Reply::text("working").with_tool("Bash", write), Reply::text("all done")]);
    let session = Session::new(&claude, &api).allow("Bash");

    let output = session.print("make the file");

    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(output.answer(), "all done");
    assert_eq!(output.result()["is_error"], false);
    assert_eq!(fs::read_to_string(session.project().join("made.txt")).unwrap(), "made\n");
    let requests = api.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[0].last_user_text().contains("make the file"));
    assert_eq!(requests[1].last_user_text(), "made");
    assert!(requests[1].text().contains("make the file"));
    let transcript = session.transcript();
    assert_eq!(transcript.file_stem().unwrap().to_str(), Some(output.session_id()));
}

#[test]
fn a_hook_of_a_plugin_speaks_to_the_user() {
    let Some(claude) = Client::find() else { return };
    let api = Api::start(vec![Reply::text("hello")]);
    let session = Session::new(&claude, &api);
    let plugin = session.root().join("plugin");
    let say = r#"echo '{"systemMessage": "seen"}'"#;
    let hooks = json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": say}]}]}});
    for (file, content) in
        [(".claude-plugin/plugin.json", json!({"name": "probe"})), ("hooks/hooks.json", hooks)]
    {
        let file = plugin.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content.to_string()).unwrap();
    }

    let output = session.plugin(&plugin).print("say hello");

    assert_eq!(output.system_messages(), ["Stop says: seen"], "{output:?}");
}

#[test]
fn an_api_error_ends_a_printed_run_with_an_error() {
    let Some(claude) = Client::find() else { return };
    let api = Api::start(vec![Reply::error(529)]);
    let session = Session::new(&claude, &api).env("CLAUDE_CODE_MAX_RETRIES", "1");

    let output = session.print("say hello");

    assert_eq!(output.code, Some(1), "{output:?}");
    assert_eq!(output.result()["is_error"], true);
    assert_eq!(output.result()["api_error_status"], 529);
    assert_eq!(api.requests().len(), 2, "one try and one retry");
}

#[test]
fn a_killed_run_can_be_resumed() {
    let Some(claude) = Client::find() else { return };
    let look = json!({"command": "echo looked", "description": "look"});
    let never = Reply::text("never arrives").delay(Duration::from_secs(600));
    let api = Api::start(vec![Reply::tool("Bash", look), never, Reply::text("back again")]);
    let session = Session::new(&claude, &api).allow("Bash");

    let running = session.spawn_print("remember the number 4711", &[]);
    api.wait_for_requests(2, SOON);
    let killed = running.kill();

    assert_eq!(killed.code, None);
    assert!(killed.events.iter().all(|event| event["type"] != "result"));
    let resumed = session.resume(killed.session_id(), "go on");
    assert_eq!(resumed.answer(), "back again", "{resumed:?}");
    assert_eq!(resumed.session_id(), killed.session_id());
    assert!(api.requests()[2].text().contains("4711"));
}

#[test]
fn the_screen_shows_a_conversation() {
    let Some(claude) = Client::find() else { return };
    if !Screen::available() {
        return;
    }
    let long = (1..=100).map(|line| format!("line {line} of the story\n\n")).collect::<String>();
    let api = Api::start(vec![Reply::text(&long), Reply::text("the second answer")]);
    let session = Session::new(&claude, &api);

    let screen = Screen::start(&session);
    screen.type_line("tell a story;");
    screen.wait_for("line 100 of the story", SOON);
    screen.type_line("and another");
    screen.wait_for("the second answer", SOON);

    assert!(screen.text().contains("line 1 of the story"), "{}", screen.text());
    assert!(api.requests()[0].last_user_text().contains("tell a story;"));
}

#[test]
fn escape_interrupts_a_turn() {
    let Some(claude) = Client::find() else { return };
    if !Screen::available() {
        return;
    }
    let never = Reply::text("never arrives").delay(Duration::from_secs(600));
    let look = json!({"command": "echo looked", "description": "look"});
    // Before the first sign of the agent, Escape would put the prompt back instead of interrupting.
    let api = Api::start(vec![Reply::tool("Bash", look), never, Reply::text("listening")]);
    let session = Session::new(&claude, &api).allow("Bash");

    let screen = Screen::start(&session);
    screen.type_line("think for a while");
    api.wait_for_requests(2, SOON);
    screen.key("Escape");
    screen.wait_for("Interrupted", SOON);
    screen.type_line("are you there");
    screen.wait_for("listening", SOON);
}

#[test]
fn the_api_stops_at_once_in_mid_delay() {
    let api = Api::start(vec![Reply::text("late").delay(Duration::from_secs(600))]);
    let mut stream = std::net::TcpStream::connect(api.url().trim_start_matches("http://")).unwrap();
    let body = json!({"tools": [{}], "messages": []}).to_string();
    let length = body.len();
    let head = format!("POST /v1/messages HTTP/1.1\r\ncontent-length: {length}\r\n\r\n");
    std::io::Write::write_all(&mut stream, format!("{head}{body}").as_bytes()).unwrap();
    api.wait_for_requests(1, SOON);

    let before = Instant::now();
    drop(api);
    assert!(before.elapsed() < SOON, "it does not wait for its reply");
}
