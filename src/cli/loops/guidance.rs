//! `ralph-guidance`: what the user encourages, forbids and allows.

use super::scan::scan_project;
use crate::cli::{Failure, Project, World};
use crate::core::event::changes;
use crate::core::guidance::finding::Finding;
use crate::core::guidance::merge::GuidanceLists;
use crate::core::guidance::{self, AddResult, Entry, Guidance, List, MAX_TEXT_CHARS, Overruling};
use crate::core::settings::Resolved;
use crate::core::text::clean;
use crate::core::time::{self, Stamp, duration};
use crate::scan::{self, ScanBudget};
use crate::store::state::{self, Document, Locked};
use crate::store::user::{armed, given_guidance};
use crate::store::{config, events};
use crate::view;

#[derive(Clone, Debug, PartialEq)]
pub enum GuidanceCommand {
    Give { list: List, text: String, options: Options },
    List,
    Remove(String),
    Clear,
    Allow(String),
    Adopt,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    pub pin: bool,
    pub for_seconds: Option<f64>,
    pub replace: bool,
}

impl GuidanceCommand {
    /// Returns the request for a text; without text or options it is the list.
    pub fn give(list: List, text: &str, options: Options) -> Result<GuidanceCommand, Failure> {
        let text = clean::line(text);
        match text.chars().count() {
            0 if options == Options::default() => Ok(GuidanceCommand::List),
            0 => Err(Failure::usage("no text given")),
            1..=MAX_TEXT_CHARS => Ok(GuidanceCommand::Give { list, text, options }),
            count => {
                Err(Failure::usage(format!("text too long: {count} characters (at most {MAX_TEXT_CHARS})")))
            }
        }
    }

    /// Returns the request to remove an entry.
    pub fn remove(which: &str) -> Result<GuidanceCommand, Failure> {
        match which.trim() {
            "" => {
                Err(Failure::usage("no number given")
                    .hint("use --remove N; without a text, the list is shown"))
            }
            which => Ok(GuidanceCommand::Remove(which.to_owned())),
        }
    }

    /// Parses the text of a slash command. Flags come before or after the text; a word with dashes within it is text,
    /// as in "never use --force".
    pub fn from_text(list: List, text: &str) -> Result<GuidanceCommand, Failure> {
        // White space is folded in the end, so nothing is lost by taking the text word by word.
        let mut words: &[&str] = &text.split_whitespace().collect::<Vec<_>>();
        let mut options = Options::default();
        while let [word, rest @ ..] = words
            && word.starts_with("--")
        {
            words = match *word {
                "--" => return GuidanceCommand::give(list, &rest.join(" "), options),
                "--for" => options.take_for(rest)?,
                word if word.starts_with("--for=") => {
                    let value = [&[&word["--for=".len()..]], rest].concat();
                    let left = options.take_for(&value)?.len();
                    &rest[rest.len() - left..]
                }
                "--remove" => return GuidanceCommand::remove(&rest.join(" ")),
                word if options.take(word) => rest,
                word => match word.strip_prefix("--remove=") {
                    Some(number) => return GuidanceCommand::remove(&[&[number], rest].concat().join(" ")),
                    None => return Err(unknown(word)),
                },
            };
        }
        loop {
            if let [rest @ .., word] = words
                && options.take(word)
            {
                words = rest;
            } else if let Some(at) = trailing_for(words) {
                let value = words[at..].join(" ");
                options.set_for(value["--for".len()..].trim_start_matches(['=', ' ']))?;
                words = &words[..at];
            } else if let [_, .., "--remove", number] = words
                && number.parse::<usize>().is_ok()
            {
                return Err(Failure::usage("a text and --remove cannot be used together"));
            } else {
                return GuidanceCommand::give(list, &words.join(" "), options);
            }
        }
    }
}

impl Options {
    /// Takes a word if it is a flag by itself.
    fn take(&mut self, word: &str) -> bool {
        match word {
            "--pin" => self.pin = true,
            "--replace" => self.replace = true,
            _ => return false,
        }
        true
    }

    /// Takes the duration at the beginning of the words. Returns the other words.
    fn take_for<'a, 'w>(&mut self, words: &'a [&'w str]) -> Result<&'a [&'w str], Failure> {
        let (value, rest) = words.split_at(duration::leading(words));
        self.set_for(&value.join(" "))?;
        Ok(rest)
    }

    pub fn set_for(&mut self, value: &str) -> Result<(), Failure> {
        let seconds = guidance::parse_span(value).ok_or_else(|| {
            Failure::invalid_value("--for", value).hint("use a duration such as 30m, 1h 30m or 1d")
        })?;
        self.for_seconds = Some(seconds);
        Ok(())
    }
}

/// Returns where a `--for` begins that ends the text with its duration, or with one word that is none.
fn trailing_for(words: &[&str]) -> Option<usize> {
    let at = words.iter().rposition(|word| *word == "--for" || word.starts_with("--for="))?;
    let inline = words[at].strip_prefix("--for=");
    let value: Vec<&str> = inline.into_iter().chain(words[at + 1..].iter().copied()).collect();
    (value.len() == 1 || duration::leading(&value) == value.len()).then_some(at).filter(|_| !value.is_empty())
}

fn unknown(word: &str) -> Failure {
    let otherwise = "flags are --pin, --for DURATION, --replace and --remove N; put -- before text that starts with a dash";
    Failure::unknown_flag(word, &["--pin", "--for", "--replace", "--remove"], otherwise)
}

pub fn run(
    world: &World,
    project: &Project,
    session: Option<&str>,
    request: &GuidanceCommand,
    json: bool,
) -> Result<String, Failure> {
    let session = session.filter(|id| state::usable_session_id(id));
    let resolved = config::load(world, project);
    if *request == GuidanceCommand::List {
        let document = state::peek(project)?.unwrap_or_default();
        let guidance = given_guidance::guidance(world, project, &document)?;
        return Ok(if json {
            format!("{}\n", view::guidance::json(&guidance, world.now))
        } else {
            let max_age = config::guidance_max_age_ms(world, project, &document);
            view::guidance::listing(&guidance, session, world.now, max_age)
        });
    }
    let findings = findings(world, project, &resolved, request);
    let mut state = Locked::open(project, world.now)?;
    let mut guidance = given_guidance::guidance(world, project, &state.document)?;
    let before = guidance.clone();
    let restored = given_guidance::restored_note(project, &guidance);
    let notes: Vec<String> = state.moved_aside.iter().cloned().chain(restored).collect();
    guidance.bring_back_to(world.now);
    let max_age = config::guidance_max_age_ms(world, project, &state.document);
    let expired = guidance.purge_over_age(world.now, max_age);
    let mut answer = match request {
        GuidanceCommand::Give { list, text, options } => {
            let replaced = if options.replace { guidance.clear(*list, session) } else { Vec::new() };
            let mut entry = entry(world, session, text, *options);
            let overruled_by = overruled_by(&guidance, *list, &entry, &findings);
            let overruling =
                |by: &String| Overruling { session_id: entry.session_id.clone(), by: by.clone() };
            entry.overruled = overruled_by.iter().map(overruling).collect();
            let change = guidance.give(*list, entry);
            refuse_full(&guidance, session)?;
            let terms = terms(*options);
            given(
                *list,
                &format!("{}{terms}", clean::excerpt(text, 200)),
                &change,
                &replaced,
                overruled_by.as_deref(),
            )
        }
        GuidanceCommand::Remove(which) => {
            let removed = guidance.remove(which, session).ok_or_else(|| {
                Failure::refused(format!("no such guidance: '{}'", clean::excerpt(which, 60)))
                    .hint("`ralph-guidance list` shows all guidance with its numbers")
            })?;
            format!("removed: {}", clean::excerpt(&removed.text, 200))
        }
        GuidanceCommand::Clear => {
            let lists = [List::Encouraged, List::Forbidden, List::Allowed];
            let count: usize = match session {
                Some(_) => lists.map(|list| guidance.clear(list, session).len()).iter().sum(),
                None => guidance.clear_all(),
            };
            format!("cleared: {count} removed")
        }
        GuidanceCommand::Allow(id) => {
            let finding = find(world, project, &state.document.findings(), id)?;
            guidance.give(List::Allowed, entry(world, session, &finding.id, Options::default()));
            refuse_full(&guidance, session)?;
            format!("allowed: {} ({}) until it changes", finding.id, clean::line(&finding.file))
        }
        GuidanceCommand::Adopt => {
            let adopted = adopt(world, session, &mut guidance)?;
            refuse_full(&guidance, session)?;
            adopted
        }
        GuidanceCommand::List => String::new(),
    };
    answer.push_str(&format!("; {} active", guidance.count_for(session)));
    if !expired.is_empty() {
        answer.push_str(&format!(
            ", {} expired and removed: {}",
            expired.len(),
            guidance::words::quoted(&expired)
        ));
    }
    if matches!(request, GuidanceCommand::Give { .. } | GuidanceCommand::Allow(_) | GuidanceCommand::Adopt) {
        let own =
            session.map(|id| armed::load_armed(world, project, id, &state.document)).transpose()?.flatten();
        answer.push_str(&format!("; {}", reach(request, session, own.is_some_and(|run| run.is_alive()))));
    }
    given_guidance::save(world, project, &mut state, &guidance)?;
    note_changes(world, project, &state.document, &before, &guidance);
    if json {
        let mut shown = view::guidance::json(&guidance, world.now);
        if !notes.is_empty() {
            shown["notes"] = serde_json::json!(notes);
        }
        return Ok(format!("{shown}\n"));
    }
    Ok(answer + &notes.iter().map(|note| format!("\nNote: {}", clean::line(note))).collect::<String>())
}

/// Adds what changed to the events of each loop that it is for. The guidance itself is saved, so a failure costs nothing.
fn note_changes(world: &World, project: &Project, document: &Document, before: &Guidance, after: &Guidance) {
    let loops = armed::load_all(world, project, document).loops;
    for (session, run) in loops.iter().filter(|(_, run)| run.is_alive()) {
        let changes = changes::guidance(before, after, session, run.iteration);
        events::note(world, run, &changes);
    }
}

/// Makes the entries in the state that the user did not give the user's own, as if they were given now.
fn adopt(world: &World, session: Option<&str>, guidance: &mut Guidance) -> Result<String, Failure> {
    let foreign = std::mem::take(&mut guidance.foreign);
    if foreign.is_empty() {
        return Err(Failure::refused("nothing to adopt: all guidance of this project is from you"));
    }
    let mut names = Vec::new();
    for (list, found) in foreign {
        let options = Options { pin: found.pinned, for_seconds: found.for_seconds, replace: false };
        let text = clean::line(&found.text);
        if text.is_empty() || text.chars().count() > MAX_TEXT_CHARS {
            continue;
        }
        let pinned = if options.pin { " (pinned)" } else { "" };
        names.push(format!("{}: {}{pinned}", list.word(), clean::excerpt(&text, 200)));
        guidance.give(list, entry(world, session, &text, options));
    }
    Ok(format!("adopted as yours: {}", names.join(", ")))
}

/// Returns what can overrule the entry, as it is now. A first scan that takes longer continues at the next turn.
fn findings(
    world: &World,
    project: &Project,
    resolved: &Resolved,
    request: &GuidanceCommand,
) -> Vec<Finding> {
    let is_encouraged = matches!(request, GuidanceCommand::Give { list: List::Encouraged, .. });
    if !is_encouraged || !resolved.is_on("scan.enabled") {
        return Vec::new();
    }
    scan::scan(world, &project.work_tree(&world.working_dir), resolved, ScanBudget::Hook).findings
}

/// Returns the finding that overrules a new entry.
fn overruled_by(guidance: &Guidance, list: List, entry: &Entry, findings: &[Finding]) -> Option<String> {
    if list != List::Encouraged {
        return None;
    }
    let for_same_loops =
        |allowed: &&Entry| allowed.session_id.is_none() || allowed.session_id == entry.session_id;
    let allowed = guidance.allowed.iter().filter(for_same_loops).cloned().collect();
    let alone = Guidance { encouraged: vec![entry.clone()], allowed, ..Guidance::default() };
    GuidanceLists::merge(&alone, "", findings).overruled.pop().map(|overruled| overruled.by)
}

/// Refuses what does not fit in the session's loop, or in the loop of every session, whether it has started or not.
fn refuse_full(guidance: &Guidance, session: Option<&str>) -> Result<(), Failure> {
    let Some(full) = guidance.full(session) else { return Ok(()) };
    let hint = "remove an entry with --remove N (`ralph-guidance list` shows the numbers), or use --replace";
    Err(Failure::refused(full.to_string()).hint(hint))
}

/// Returns which loops an entry is for.
fn reach(request: &GuidanceCommand, session: Option<&str>, has_loop: bool) -> String {
    let command = match request {
        _ if session.is_none() => return "for all loops of this project".into(),
        _ if has_loop => return "for this session's loop".into(),
        GuidanceCommand::Give { list: List::Encouraged, .. } => "encourage TEXT",
        GuidanceCommand::Give { .. } => "forbid TEXT",
        GuidanceCommand::Adopt => "adopt",
        _ => "allow ID",
    };
    format!(
        "for the next loop of this session; `ralph-guidance {command}` in a terminal reaches all loops of the project"
    )
}

fn entry(world: &World, session: Option<&str>, text: &str, options: Options) -> Entry {
    Entry {
        text: text.to_owned(),
        timestamp: Some(world.now),
        session_id: session.map(str::to_owned),
        pinned: options.pin,
        for_seconds: options.for_seconds,
        ..Entry::default()
    }
}

/// Returns how long an entry counts, if the user said so.
fn terms(options: Options) -> String {
    match (options.for_seconds, options.pin) {
        (Some(seconds), _) => format!(" (for {})", time::span(Stamp::from_seconds(seconds).0)),
        (None, true) => " (pinned)".into(),
        (None, false) => String::new(),
    }
}

fn given(
    list: List,
    text: &str,
    change: &AddResult,
    replaced: &[Entry],
    overruled_by: Option<&str>,
) -> String {
    let mut answer = format!("{}: {text}", list.word());
    answer.push_str(match change {
        AddResult::Added => "",
        AddResult::Refreshed => "; already in the list, its age starts again",
        AddResult::Moved(List::Encouraged) => "; it was encouraged before",
        AddResult::Moved(_) => "; it was forbidden before",
    });
    if !replaced.is_empty() {
        answer.push_str(&format!("; replaces {}", guidance::words::quoted(replaced)));
    }
    if let Some(by) = overruled_by {
        let id = by.split(' ').next().unwrap_or_default();
        answer.push_str(&format!(
            "; not sent to the agent, because finding {by} overrules it; `ralph-guidance allow {id}` allows the finding"
        ));
    }
    answer
}

/// Finds a finding by its id or the beginning of it, in the last scan or else in a new one.
fn find(world: &World, project: &Project, known: &[Finding], id: &str) -> Result<Finding, Failure> {
    let id = id.trim();
    let pick = |findings: &[Finding]| {
        let mut matching = findings.iter().filter(|finding| !id.is_empty() && finding.id.starts_with(id));
        matching.next().filter(|first| first.id == id || matching.next().is_none()).cloned()
    };
    pick(known).or_else(|| pick(&scan_project(world, project, false).findings)).ok_or_else(|| {
        Failure::refused(format!("no such finding: '{}'", clean::excerpt(id, 60)))
            .hint("`ralph scan` lists the findings with their ids")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn give(text: &str) -> GuidanceCommand {
        GuidanceCommand::from_text(List::Forbidden, text)
            .unwrap_or_else(|failure| panic!("{text}: {failure}"))
    }

    fn parts(text: &str) -> (String, bool, Option<f64>, bool) {
        match give(text) {
            GuidanceCommand::Give { text, options: Options { pin, for_seconds, replace }, .. } => {
                (text, pin, for_seconds, replace)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn flags_stand_around_the_text_and_dashes_within_it_are_text() {
        assert_eq!(parts("never use --force"), ("never use --force".into(), false, None, false));
        assert_eq!(parts("--pin never push"), ("never push".into(), true, None, false));
        assert_eq!(parts("never push --pin --for 2h"), ("never push".into(), true, Some(7200.0), false));
        assert_eq!(parts("--for=30m --replace go slow"), ("go slow".into(), false, Some(1800.0), true));
        for text in [
            "--for 1h 30m do it",
            "--for '1h 30m' do it",
            "--for=\"1h 30m\" do it",
            "--for=1h 30m do it",
            "do it --for 1h 30m",
            "do it --for '1h 30m'",
            "do it --for=1H 30M",
            "do it --for 1h30m",
        ] {
            assert_eq!(parts(text), ("do it".into(), false, Some(5400.0), false), "{text}");
        }
        assert!(parts("do it --for 1h 30m --pin").1);
        assert_eq!(parts("--for 1h 2d old files").0, "2d old files");
        assert_eq!(parts("look --for 1h 30m of silence").0, "look --for 1h 30m of silence");
        assert_eq!(parts("-- --force is bad"), ("--force is bad".into(), false, None, false));
        assert_eq!(
            parts("it's \"$(x)\" `y`\n\tand  more"),
            ("it's \"$(x)\" `y` and more".into(), false, None, false)
        );
        assert_eq!(give("   \u{1b} \n"), GuidanceCommand::List);
        assert_eq!(give(""), GuidanceCommand::List);
    }

    #[test]
    fn mistakes_are_errors() {
        for text in ["--pinn x", "--for soon x", "x --for", "--pin", &"x".repeat(2001)] {
            let taken = GuidanceCommand::from_text(List::Forbidden, text);
            assert!(taken.is_err() || text == "x --for", "{text}: {taken:?}");
        }
        assert!(GuidanceCommand::from_text(List::Forbidden, &"x".repeat(2000)).is_ok());
    }
}
