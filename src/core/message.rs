//! What the user reads: one line at every turn, a few at an ending.

use super::decide::turn::CheckResult;
use super::decide::{NextTurn, Note};
use super::outcome::Outcome;
use super::record::{Engine, StoredLoop, WaitingFor};
use super::settings::{QuotaSettings, Settings};
use super::time::{self, Stamp};
use crate::core::decide::handover::FILE as HANDOVER;
use crate::core::decide::limits;
use crate::core::text::clean;

const HOUR_MS: i64 = 3_600_000;

/// What the user does about a context that is nearly full, if the client cannot compact it by itself.
pub const TYPE_COMPACT: &str =
    "the context is nearly full: type /compact, and the agent continues from its handover";

/// Returns `Ralph 12/50 · Runtime: 3.2h/9.0h | Wall: 15.0h`, with the cost if it is known.
pub fn position(run: &StoredLoop, settings: &Settings, now: Stamp) -> String {
    let mut line =
        format!("Ralph {} · {}", of(run.iteration, settings.max_iterations), times(run, settings, now));
    line.push_str(&cost(run));
    line
}

/// Returns ` · $1.50`, if the client told a cost of a cent or more.
fn cost(run: &StoredLoop) -> String {
    let cost = run.usage.cost_usd.filter(|cost| *cost >= 0.005);
    cost.map_or_else(String::new, |cost| format!(" · ${cost:.2}"))
}

/// Returns `Runtime: 3.2h/9.0h | Wall: 15.0h`; with a limit below an hour `Runtime: 9m/10m | Wall: 12m`.
pub fn times(run: &StoredLoop, settings: &Settings, now: Stamp) -> String {
    let format = time_format(settings);
    format!("{} | Wall: {}", runtime(run, settings), format(run.wall_ms(now)))
}

/// Returns `Runtime: 3.2h/9.0h`.
pub fn runtime(run: &StoredLoop, settings: &Settings) -> String {
    let format = time_format(settings);
    let limit = match settings.max_runtime_ms {
        0 => String::new(),
        limit => format!("/{}", format(limit)),
    };
    format!("Runtime: {}{limit}", format(run.runtime_ms()))
}

fn time_format(settings: &Settings) -> fn(i64) -> String {
    if (1..HOUR_MS).contains(&settings.max_runtime_ms) { time::span } else { time::hours }
}

pub fn of(count: u64, limit: u64) -> String {
    if limit == 0 { count.to_string() } else { format!("{count}/{limit}") }
}

pub fn continuing(run: &StoredLoop, note: &Note, settings: &Settings, now: Stamp) -> String {
    let mut line = position(run, settings, now) + &moved(run);
    if limits::ending_soon(run, settings) {
        line.push_str(" · ENDING SOON");
    }
    for remark in remarks(note) {
        line.push_str(&format!(" · {remark}"));
    }
    if run.iteration == 1 {
        for limit in inactive(run, settings) {
            line.push_str(&format!(" · {limit} inactive: Claude Code has not reported a figure yet"));
        }
    }
    line
}

/// Returns the limits that cannot act, because the client has told no figure for them.
fn inactive(run: &StoredLoop, settings: &Settings) -> Vec<&'static str> {
    let QuotaSettings { land_at_percent, reserve_percent, .. } = settings.quota;
    let is_quota_limited = land_at_percent.is_some() || reserve_percent.is_some();
    let limits = [
        ("cost limit", settings.max_cost_usd.is_some() && run.usage.cost_usd.is_none()),
        ("context limit", settings.max_context_percent.is_some() && run.usage.context_percent.is_none()),
        ("quota limit", is_quota_limited && run.quota.windows.is_empty()),
    ];
    limits.into_iter().filter(|(_, is_inactive)| *is_inactive).map(|(limit, _)| limit).collect()
}

/// Returns where the agent works now, if the user does not know that yet.
fn moved(run: &StoredLoop) -> String {
    let place = &run.session.work_tree;
    if *place == run.told.work_tree {
        String::new()
    } else if place.is_empty() {
        " · back in the project".into()
    } else {
        format!(" · now in worktree {}", clean::excerpt(place, 60))
    }
}

/// Returns what the user should know about a turn beside its position.
pub fn remarks(note: &Note) -> Vec<String> {
    let rejected = note.rejected.as_ref().map(|why| ("completion rejected", why.brief()));
    let ignored = note.ignored.as_ref().map(|why| ("signal ignored", why.brief()));
    let claims = rejected.into_iter().chain(ignored);
    let claims = claims.map(|(what, why)| format!("{what}: {}", clean::excerpt(&why, 160)));
    let paused =
        (note.paused_ms >= 1000).then(|| format!("paused {}, not counted", time::span(note.paused_ms)));
    let next_turn = match &note.next_turn {
        NextTurn::Continue => None,
        NextTurn::FinishUp(words) => Some(format!("{words}: the agent finishes up")),
        NextTurn::WriteHandover(words) => Some(format!("{words}: the agent writes {HANDOVER}")),
        NextTurn::NewContext => Some(format!("handover written to {HANDOVER}")),
    };
    let remarks = paused
        .into_iter()
        .chain(claims)
        .chain(note.warning.iter().map(|warning| warning.found.clone()))
        .chain(note.cost_unknown.clone());
    remarks.chain(next_turn).collect()
}

/// Returns `passed`, `failed (exit code 1): cargo test`, or nothing if no check ran.
pub fn checked(results: &[CheckResult]) -> String {
    match results.iter().find(|result| !result.passed) {
        Some(failed) => clean::excerpt(&failed.line(), 120),
        None if results.is_empty() => String::new(),
        None => "passed".into(),
    }
}

pub fn waiting(run: &StoredLoop, settings: &Settings, now: Stamp) -> String {
    let mut line = position(run, settings, now) + &moved(run);
    if let Some(advice) = &run.pending.advice {
        line.push_str(&format!(" · {}", clean::excerpt(advice, 160)));
    }
    match run.session.waiting.as_ref().map(|waiting| &waiting.what) {
        Some(WaitingFor::User(queued)) => {
            if queued.text.is_empty() {
                // A client with modules does not write down what is queued.
                return format!("{line} · running what you typed first, then continuing");
            }
            let verb = if queued.text.starts_with('/') { "running" } else { "answering" };
            let then = if queued.text.starts_with("/ralph:stop") { "" } else { ", then continuing" };
            format!("{line} · {verb} your \"{}\" first{then}", clean::excerpt(&queued.text, 40))
        }
        Some(WaitingFor::Compaction) => {
            format!("{line} · compacting the context, then continuing from {HANDOVER}")
        }
        Some(WaitingFor::Background(work)) => {
            let limit = work.until.map(|until| format!(", {} at most", time::span(until - now)));
            let what = clean::excerpt(&work.what, 60);
            format!("{line} · waiting for background work: {what}{}", limit.unwrap_or_default())
        }
        Some(WaitingFor::UsageLimit(until)) => {
            let why = run.quota.held.as_ref().map_or("usage limit", |held| &held.words);
            format!("{line} · {}; continuing at {}", clean::excerpt(why, 160), until.minute())
        }
        _ => line,
    }
}

pub fn paused(run: &StoredLoop, settings: &Settings, now: Stamp) -> String {
    let reason = clean::line(run.reason.as_deref().unwrap_or("paused"));
    let position = position(run, settings, now);
    format!("{position} · PAUSED: {reason}. Resume with /ralph:start --resume or end with /ralph:stop")
}

/// Says that a loop was started, by what it ends, and what else the user should know.
pub fn started(run: &StoredLoop, settings: &Settings, verb: &str, notes: &[String]) -> String {
    let words = iterations;
    let amounts = |iterations: u64, runtime_ms: i64| {
        let iterations = (iterations > 0).then(|| words(iterations));
        let runtime = (runtime_ms > 0).then(|| format!("{} runtime", time::span(runtime_ms)));
        iterations.into_iter().chain(runtime).collect::<Vec<String>>()
    };
    let mut limits = amounts(settings.max_iterations, settings.max_runtime_ms);
    limits.extend(settings.max_cost_usd.map(|cost| format!("${cost:.2}")));
    limits.extend((settings.max_tokens > 0).then(|| format!("{} tokens", tokens(settings.max_tokens))));
    let minimums = amounts(settings.min_iterations, settings.min_runtime_ms);

    let mut ends = format!("when the agent promises \"{}\"", clean::line(&settings.promise));
    if !limits.is_empty() {
        ends = format!("at {}, or {ends}", limits.join(" or "));
    }
    if !minimums.is_empty() {
        ends.push_str(&format!(" after at least {}", minimums.join(" and ")));
    }
    ends.push_str(match (settings.max_iterations, settings.max_runtime_ms) {
        (0, 0) => " (no iteration limit, no runtime limit)",
        (0, _) => " (no iteration limit)",
        (_, 0) => " (no runtime limit)",
        _ => "",
    });
    let quota: String = quota(settings).iter().map(|line| format!("\n{line}.")).collect();
    let checks: String =
        listed(&settings.checks, 200).iter().map(|check| format!("\nCheck: {check}")).collect();
    let allowed: String = listed(&settings.allowed_tools, 200)
        .iter()
        .map(|rule| format!("\nAllowed without asking: {rule}"))
        .collect();
    let notes: String = notes.iter().map(|note| format!("\nNote: {}", clean::block(note))).collect();
    format!(
        "Ralph {verb}: {}\nEnds {ends}.{quota}{checks}{allowed}\n/ralph:status shows it, /ralph:stop ends it, Esc pauses it.{notes}",
        clean::excerpt(&run.task, 200)
    )
}

/// Returns what the loop does at a level of the plan or of the context.
pub fn quota(settings: &Settings) -> Vec<String> {
    let QuotaSettings { land_at_percent, reserve_percent, stops } = settings.quota;
    let then = if stops { "ends" } else { "waits for the reset" };
    let land = land_at_percent
        .map(|level| format!("At {level}% of a usage limit the agent finishes up, then the loop {then}"));
    let reserve = reserve_percent
        .map(|left| format!("Once less than {left}% of a usage limit is left, the loop {then}"));
    let context = settings.max_context_percent;
    let context = context.map(|level| {
        format!("At {level}% of the context the agent writes a handover and continues in a new context")
    });
    land.into_iter().chain(reserve).chain(context).collect()
}

/// Returns the first commands of a list, each in so many columns, and how many more there are.
pub fn listed(commands: &[String], columns: usize) -> Vec<String> {
    const MAX_LISTED: usize = 10;
    let shown = commands.iter().take(MAX_LISTED).map(|command| clean::excerpt(command, columns));
    let more = commands.len().saturating_sub(MAX_LISTED);
    shown.chain((more > 0).then(|| format!("and {more} more"))).collect()
}

/// Returns the whole ending: outcome, reason, what it took, and the command that continues.
pub fn ended(run: &StoredLoop, settings: &Settings, now: Stamp) -> String {
    let outcome = run.outcome.unwrap_or(Outcome::Error);
    let reason = clean::excerpt(run.reason.as_deref().unwrap_or(""), 300);
    let stop = if reason.ends_with(['.', '?', '!']) { "" } else { "." };
    let words = Some(outcome.words()).filter(|words| *words != outcome.name());
    let words = words.map_or_else(String::new, |words| format!("{words}: "));
    let mut text = format!("Ralph ended ({outcome}): {words}{reason}{stop}");
    text.push_str(&format!(" {} · {}", iterations(run.iteration), times(run, settings, now)));
    if run.usage.tokens() > 0 {
        text.push_str(&format!(" · {} tokens", tokens(run.usage.tokens())));
    }
    text.push_str(&cost(run));
    text.push_str(&moved(run));
    if let Some(next) = next_step(run, outcome) {
        text.push_str(&format!("\nNext: {next}"));
    }
    text
}

/// Returns the checks with their last results: `passed: cargo test`, `not run: cargo clippy`.
pub fn checks(run: &StoredLoop, settings: &Settings) -> Vec<String> {
    let one = |command: &String| {
        let last = run.checks.iter().find(|result| result.command == *command);
        last.map_or_else(|| format!("not run: {}", clean::line(command)), CheckResult::line)
    };
    settings.checks.iter().map(one).collect()
}

/// Returns the command that continues after an ending, and what to do before it.
pub fn next_step(run: &StoredLoop, outcome: Outcome) -> Option<String> {
    let resume = resume_command(run);
    if let Some(raised) = limits::raise(outcome, run.reason.as_deref().unwrap_or_default()) {
        return Some(format!("{resume} {raised}"));
    }
    Some(match outcome {
        Outcome::Complete => return None,
        Outcome::Blocked if let Some(flags) = &run.session.flags_to_allow => match clean::line(flags) {
            flags if flags.is_empty() && run.engine == Engine::Runner => {
                format!("allow it in the agent's own settings, then {resume}")
            }
            flags if flags.is_empty() => format!("allow it with /permissions in Claude Code, then {resume}"),
            flags => format!("{resume} {flags}"),
        },
        Outcome::Blocked if run.engine == Engine::InSession => {
            format!(
                "fix the problem described in ralph/blocked.txt, then {resume}; or tell the agent what to do: /ralph:answer TEXT"
            )
        }
        Outcome::Blocked => {
            format!(
                "fix the problem described in ralph/blocked.txt, or tell the agent what to do with `ralph answer TEXT`, then {resume}"
            )
        }
        Outcome::Decide if run.engine == Engine::InSession => "/ralph:answer TEXT".into(),
        Outcome::Decide => format!("`ralph answer TEXT`, then {resume}"),
        Outcome::Stuck | Outcome::Circuit => format!("{resume} --reset"),
        _ => resume.to_owned(),
    })
}

/// Returns the command that continues a loop of this engine.
pub fn resume_command(run: &StoredLoop) -> &'static str {
    match run.engine {
        Engine::InSession => "/ralph:start --resume",
        Engine::Runner => "ralph run",
    }
}

/// Returns `1 iteration` or `12 iterations`.
pub fn iterations(count: u64) -> String {
    format!("{count} iteration{}", if count == 1 { "" } else { "s" })
}

/// Returns what happened last in a loop, and when: its ending, a turn, or its start.
pub fn newest(run: &StoredLoop) -> (&'static str, Stamp) {
    match run.ended_at {
        Some(ended) => ("Ended", ended),
        None if run.iteration == 0 => ("Started", run.started_at),
        None => ("Last turn", run.last_seen()),
    }
}

/// Returns the beginning of a run id, as people name it in `--run`.
pub fn short_id(run_id: &str) -> String {
    clean::excerpt(run_id, 9).replace('…', "")
}

/// Returns `812`, `45k` or `1.3M`.
pub fn tokens(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..1_000_000 => format!("{}k", count / 1000),
        _ => format!("{:.1}M", count as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::circuit::BreakerWarning;
    use crate::core::decide::completion::Rejection;
    use crate::core::record::{BackgroundWait, LoopState, QueuedPrompt, Session, Usage, Waiting};

    fn run() -> StoredLoop {
        StoredLoop {
            state: LoopState::Running,
            iteration: 12,
            accumulated_runtime_seconds: 11_520.0,
            started_at: Stamp(0),
            ..StoredLoop::default()
        }
    }

    #[test]
    fn one_line_says_where_the_loop_is() {
        let now = Stamp(15 * 3_600_000);
        let line = continuing(&run(), &Note::default(), &Settings::default(), now);
        assert_eq!(line, "Ralph 12/50 · Runtime: 3.2h/9.0h | Wall: 15.0h");
        let late = StoredLoop { iteration: 46, ..run() };
        assert!(continuing(&late, &Note::default(), &Settings::default(), now).ends_with("· ENDING SOON"));
        let unlimited = Settings { max_iterations: 0, max_runtime_ms: 0, ..Settings::default() };
        assert_eq!(
            continuing(&run(), &Note::default(), &unlimited, now),
            "Ralph 12 · Runtime: 3.2h | Wall: 15.0h"
        );
        let poc = Settings { max_runtime_ms: 600_000, ..Settings::default() };
        let short = StoredLoop { accumulated_runtime_seconds: 540.0, ..run() };
        assert_eq!(position(&short, &poc, Stamp(720_000)), "Ralph 12/50 · Runtime: 9m/10m | Wall: 12m");
    }

    #[test]
    fn an_ending_names_outcome_reason_and_the_next_command() {
        let mut run = StoredLoop {
            usage: Usage { input_tokens: 45_678, cost_usd: Some(1.5), ..Usage::default() },
            ..run()
        };
        run.end(Outcome::MaxIterations, "50 of 50 iterations\u{1b}[2J done", Stamp(3_600_000));
        assert_eq!(
            ended(&run, &Settings::default(), Stamp(9_000_000)),
            "Ralph ended (max-iterations): iteration limit reached: 50 of 50 iterations[2J done. \
             12 iterations · Runtime: 3.2h/9.0h | Wall: 1.0h · 45k tokens · $1.50\n\
             Next: /ralph:start --resume --max-iterations N"
        );
    }

    #[test]
    fn the_line_tells_what_is_new_beside_the_position() {
        let rejected =
            Note { rejected: Some(Rejection::Tasks("1 of 3 tasks pass".into())), ..Note::default() };
        let warning =
            Note { warning: Some(BreakerWarning::new("4 turns without progress", "")), ..Note::default() };
        let capped = Settings { max_cost_usd: Some(5.0), ..Settings::default() };
        let spent = |iteration, cost_usd| StoredLoop {
            iteration,
            usage: Usage { cost_usd, ..Usage::default() },
            ..run()
        };
        let unseen = " · cost limit inactive: Claude Code has not reported a figure yet";
        let cases = [
            ("nothing", spent(1, None), Note::default(), Settings::default(), ""),
            (
                "completion rejected",
                run(),
                rejected,
                Settings::default(),
                " · completion rejected: 1 of 3 tasks pass",
            ),
            (
                "a warning",
                run(),
                warning,
                Settings::default(),
                " · 4 turns without progress; one more ends the loop",
            ),
            ("cost", spent(1, Some(0.5)), Note::default(), capped.clone(), " · $0.50"),
            ("a cost limit without a cost", spent(1, None), Note::default(), capped.clone(), unseen),
            ("the same, but told before", spent(2, None), Note::default(), capped, ""),
        ];
        for (name, run, note, settings, expected) in cases {
            let line = continuing(&run, &note, &settings, Stamp(0));
            let (_, behind) = line.split_once("Wall: 0.0h").unwrap();
            assert_eq!(behind, expected, "{name}");
        }
    }

    #[test]
    fn the_line_says_what_the_loop_waits_for() {
        let user = |text: &str| Some(WaitingFor::User(QueuedPrompt { text: text.into(), at: Stamp(0) }));
        let cases = [
            ("a prompt", user("and the docs?"), " · answering your \"and the docs?\" first, then continuing"),
            (
                "a command",
                user("/ralph:forbid x"),
                " · running your \"/ralph:forbid x\" first, then continuing",
            ),
            ("the end", user("/ralph:stop"), " · running your \"/ralph:stop\" first"),
            (
                "work",
                Some(WaitingFor::Background(BackgroundWait { what: "cargo build".into(), until: None })),
                " · waiting for background work: cargo build",
            ),
            ("nothing", None, ""),
        ];
        for (name, what, expected) in cases {
            let reason = what.map(|what| Waiting { what, since: Stamp(0) });
            let line = waiting(
                &StoredLoop { session: Session { waiting: reason, ..Session::default() }, ..run() },
                &Settings::default(),
                Stamp(0),
            );
            assert_eq!(line, format!("Ralph 12/50 · Runtime: 3.2h/9.0h | Wall: 0.0h{expected}"), "{name}");
        }
    }

    #[test]
    fn a_pause_says_why_and_how_to_resume_or_end() {
        let run = StoredLoop { reason: Some("you interrupted\u{1b} the agent".into()), ..run() };
        assert_eq!(
            paused(&run, &Settings::default(), Stamp(0)),
            "Ralph 12/50 · Runtime: 3.2h/9.0h | Wall: 0.0h · PAUSED: you interrupted the agent. \
             Resume with /ralph:start --resume or end with /ralph:stop"
        );
    }

    #[test]
    fn an_ending_of_one_turn_without_figures_is_short() {
        let mut run = StoredLoop { iteration: 1, ..run() };
        run.end(Outcome::Complete, "Is it enough?", Stamp(0));
        assert_eq!(
            ended(&run, &Settings::default(), Stamp(0)),
            "Ralph ended (complete): task complete: Is it enough? 1 iteration · Runtime: 3.2h/9.0h | Wall: 0.0h"
        );
    }

    #[test]
    fn each_ending_names_the_command_that_continues() {
        let in_session = StoredLoop { engine: Engine::InSession, ..run() };
        let mut runner = StoredLoop { engine: Engine::Runner, ..run() };
        for (outcome, part) in [
            (Outcome::MaxIterations, "/ralph:start --resume --max-iterations N"),
            (Outcome::MaxRuntime, "/ralph:start --resume --max-hours N"),
            (Outcome::MaxCost, "/ralph:start --resume --max-cost N"),
            (Outcome::Stuck, "/ralph:start --resume --reset"),
            (Outcome::Circuit, "/ralph:start --resume --reset"),
            (Outcome::Stopped, "/ralph:start --resume"),
            (Outcome::Killed, "/ralph:start --resume"),
            (Outcome::UsageLimit, "/ralph:start --resume"),
            (Outcome::Interrupted, "/ralph:start --resume"),
            (Outcome::Error, "/ralph:start --resume"),
        ] {
            let step = next_step(&in_session, outcome).unwrap_or_default();
            assert!(step.ends_with(part), "{outcome}: {step}");
            let step_of_run = next_step(&runner, outcome).unwrap_or_default();
            assert_eq!(step_of_run, step.replace("/ralph:start --resume", "ralph run"), "{outcome}");
        }
        for (outcome, of_session, of_run) in [
            (
                Outcome::Blocked,
                "then /ralph:start --resume; or tell the agent what to do: /ralph:answer TEXT",
                "then ralph run",
            ),
            (Outcome::Decide, "/ralph:answer TEXT", "`ralph answer TEXT`, then ralph run"),
        ] {
            assert!(
                next_step(&in_session, outcome).is_some_and(|step| step.ends_with(of_session)),
                "{outcome}"
            );
            assert!(next_step(&runner, outcome).is_some_and(|step| step.ends_with(of_run)), "{outcome}");
        }
        assert_eq!(next_step(&in_session, Outcome::Complete), None);
        runner.session.flags_to_allow = Some("--allowed-tools Bash".into());
        let step = next_step(&runner, Outcome::Blocked);
        assert_eq!(step.as_deref(), Some("ralph run --allowed-tools Bash"));
    }

    #[test]
    fn tokens_are_rounded_for_people() {
        for (count, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1k"),
            (45_678, "45k"),
            (999_999, "999k"),
            (1_000_000, "1.0M"),
            (1_290_000, "1.3M"),
        ] {
            assert_eq!(tokens(count), expected, "{count}");
        }
    }
}
