//! `ralph notify`: shows how the user is notified, and tries every way.

use crate::cli::{CommandOutput, Invocation};
use crate::core::event::notice::address::Address;
use crate::core::event::notice::body::Format;
use crate::core::event::notice::{Notice, terminal};
use crate::core::outcome::Exit;
use crate::core::settings::NotifySettings;
use crate::core::text::clean;
use crate::core::time;
use crate::notify::answers::Topic;
use crate::notify::deliver;
use crate::store::config;
use crate::store::process::notify::{self, Delivery};
use crate::store::process::program;
use crate::store::user::deliveries;
use crate::store::user::reply::OpenReply;
use crate::store::world;
use std::io::IsTerminal;
use std::time::Duration;

/// How long the user's command may take in a test.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// How the result of a test begins that was not made.
const SKIPPED: &str = "skipped: ";

/// One way to notify: its name, what is configured, and how the test of it went.
struct Channel {
    name: &'static str,
    what: String,
    result: Option<Result<String, String>>,
}

pub fn command(call: &Invocation) -> CommandOutput {
    let resolved = config::load(&call.world, &call.project);
    let settings = resolved.notify();
    let tests = call.flag("test");
    let notice = Notice::test(&call.project.root.to_string_lossy(), call.world.now);
    let ways = [
        in_terminal(&settings, &notice, tests),
        by_command(call, &settings, &notice, tests),
        by_url(&settings, &notice, tests),
        answers(call, &settings, tests),
    ];
    let mut out = String::new();
    for Channel { name, what, result } in &ways {
        out.push_str(&format!("{name:<10} {what}\n"));
        match result {
            Some(Ok(how)) if how.starts_with(SKIPPED) => out.push_str(&format!("{:<10} {how}\n", "")),
            Some(Ok(how)) => out.push_str(&format!("{:<10} ok: {how}\n", "")),
            Some(Err(why)) => out.push_str(&format!("{:<10} FAILED: {}\n", "", clean::line(why))),
            None => {}
        }
    }
    let idle = match settings.idle_ms {
        0 => "off".into(),
        ms => format!("after {}", time::span(ms)),
    };
    out.push_str(&format!("{:<10} {idle}\n", "no progress"));
    let withheld = resolved.withheld.iter().filter(|row| row.key.name.starts_with("notify."));
    for row in withheld {
        let (place, key) = (clean::line(&row.place), row.key.name);
        out.push_str(&format!(
            "Not used: {key} in {place} is not trusted; see `ralph trust --show`, then run `ralph trust`.\n"
        ));
    }
    if let Some(last) = deliveries::last(&call.world) {
        let how = match (&last.error, last.status) {
            (Some(error), _) => format!("failed: {}", clean::excerpt(error, 200)),
            (None, status) => format!("status {}", status.unwrap_or_default()),
        };
        let (at, event, host) =
            (last.at.minute(), clean::excerpt(&last.event, 20), clean::excerpt(&last.host, 80));
        out.push_str(&format!("Last request: {at}, {event}, to {host}: {how}\n"));
    }
    let failed = ways.iter().any(|way| matches!(way.result, Some(Err(_))));
    Ok((out, if failed { Exit::Failed } else { Exit::Success }))
}

fn in_terminal(settings: &NotifySettings, notice: &Notice, tests: bool) -> Channel {
    let name = "terminal";
    if !settings.terminal {
        return Channel { name, what: "off (notify.terminal)".into(), result: None };
    }
    let what = "on, in the terminal of `ralph run`".into();
    if !tests {
        return Channel { name, what, result: None };
    }
    let stdout = std::io::stdout();
    let result = match stdout.is_terminal() {
        false => Ok(format!("{SKIPPED}stdout is not a terminal")),
        true => {
            let terminal = terminal::Terminal {
                name: world::text("TERM").unwrap_or_default(),
                is_vte: world::text("VTE_VERSION").is_some(),
                in_tmux: world::text("TMUX").is_some(),
            };
            let sequence = terminal::sequence(notice, &terminal);
            let sent = std::io::Write::write_all(&mut stdout.lock(), sequence.as_bytes());
            let words = match sequence.contains("]777;") {
                _ if sequence.len() == 1 => "rang the bell",
                true => "sent OSC 777 and the bell",
                false => "sent OSC 9 and the bell",
            };
            sent.map(|()| words.to_owned()).map_err(|error| error.to_string())
        }
    };
    Channel { name, what, result: Some(result) }
}

fn by_command(call: &Invocation, settings: &NotifySettings, notice: &Notice, tests: bool) -> Channel {
    let name = "command";
    let Some(command) = &settings.command else {
        return Channel { name, what: "none (notify.command)".into(), result: None };
    };
    let what = clean::excerpt(command, 80);
    let run = || {
        let run = program::run(notify::user_command(command, &call.project, notice), b"", COMMAND_TIMEOUT);
        if run.ended == program::ProgramEnd::Exit(0) {
            Ok(run.ended.to_string())
        } else {
            Err(run.ended.to_string())
        }
    };
    Channel { name, what, result: tests.then(run) }
}

/// Returns the host, the format and what to know of an address. The rest of it may be a secret.
fn shown(url: &str, format: Option<&str>) -> String {
    match Address::parse(url) {
        Err(why) => format!("an address that {why}"),
        Ok(address) => {
            let form = format.map_or_else(String::new, |format| {
                format!(", format {}", Format::of(format, &address).name())
            });
            let note = if address.is_open() { " (http: not encrypted)" } else { "" };
            format!("{}{form}{note}", clean::excerpt(&address.host, 80))
        }
    }
}

fn by_url(settings: &NotifySettings, notice: &Notice, tests: bool) -> Channel {
    let name = "url";
    let Some(url) = &settings.url else {
        return Channel { name, what: "none (notify.url)".into(), result: None };
    };
    let send = || {
        let delivery = Delivery::of(notice, settings, url).map_err(str::to_owned)?;
        deliver::send(&delivery).map(|status| format!("status {status}"))
    };
    Channel { name, what: shown(url, Some(&settings.format)), result: tests.then(send) }
}

fn answers(call: &Invocation, settings: &NotifySettings, tests: bool) -> Channel {
    let name = "answers";
    let Some(url) = &settings.answers else {
        return Channel { name, what: "none (notify.answers)".into(), result: None };
    };
    let poll = || {
        let open = OpenReply { run_id: String::new(), token: String::new(), asked_at: call.world.now };
        let mut topic =
            Topic::of(settings, &open).ok_or("the address has no ntfy topic; use https://HOST/TOPIC")?;
        topic.poll().map(|_| "the topic can be read".to_owned())
    };
    let what = format!("{}, for {}", shown(url, None), time::span(settings.answer_ms));
    Channel { name, what, result: tests.then(poll) }
}
