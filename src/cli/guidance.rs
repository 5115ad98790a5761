//! `ralph-guidance`: what the user encourages, forbids and allows, given to the running loop.

use super::failure::Failure;
use super::scan;
use crate::core::finding::Finding;
use crate::core::guidance::{self, Change, Entry, Guidance, LONGEST_TEXT, List};
use crate::core::{clean, time};
use crate::store::config;
use crate::store::project::Project;
use crate::store::state::{self, Locked};
use crate::store::world::World;
use crate::view::status::guidance_json;

#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    Give { list: List, text: String, pin: bool, for_seconds: Option<f64>, replace: bool },
    List,
    Remove(String),
    Clear,
    Allow(String),
}

impl Request {
    /// The words behind `encourage` or `forbid`. Our flags are read at the beginning and at the end; a word
    /// with dashes in between is part of the text, for people do write "never use --force".
    pub fn give(list: List, text: &str) -> Result<Request, Failure> {
        // White space is folded in the end, so nothing is lost by taking the text word by word.
        let mut words: &[&str] = &text.split_whitespace().collect::<Vec<_>>();
        let mut flags = Flags::default();
        loop {
            match words {
                ["--", rest @ ..] => {
                    words = rest;
                    break;
                }
                [word, rest @ ..] if word.starts_with("--") => match flags.take(word, rest.first())? {
                    0 => return Err(unknown(word)),
                    taken => words = &words[taken.min(words.len())..],
                },
                _ => {
                    flags.take_from_end(&mut words)?;
                    break;
                }
            }
        }
        let Flags { pin, for_seconds, replace } = flags;
        let text = clean::line(&words.join(" "));
        if text.is_empty() {
            return if pin || replace || for_seconds.is_some() {
                Err(Failure::usage("no text given"))
            } else {
                Ok(Request::List)
            };
        }
        let length = text.chars().count();
        if length > LONGEST_TEXT {
            return Err(Failure::usage(format!(
                "the text has {length} characters, at most {LONGEST_TEXT} are kept"
            )));
        }
        Ok(Request::Give { list, text, pin, for_seconds, replace })
    }
}

#[derive(Default)]
struct Flags {
    pin: bool,
    for_seconds: Option<f64>,
    replace: bool,
}

impl Flags {
    /// Takes a word where it is one of ours, with the next where it needs a value; returns how many it took.
    fn take(&mut self, word: &str, next: Option<&&str>) -> Result<usize, Failure> {
        match (word, word.strip_prefix("--for=")) {
            ("--pin", _) => self.pin = true,
            ("--replace", _) => self.replace = true,
            ("--for", _) => {
                self.span(next.copied().unwrap_or(""))?;
                return Ok(2);
            }
            (_, Some(value)) => self.span(value)?,
            _ => return Ok(0),
        }
        Ok(1)
    }

    fn take_from_end(&mut self, words: &mut &[&str]) -> Result<(), Failure> {
        loop {
            match **words {
                [ref rest @ .., "--for", value] => {
                    self.span(value)?;
                    *words = rest;
                }
                [ref rest @ .., word] if word != "--for" && self.take(word, None)? == 1 => *words = rest,
                _ => return Ok(()),
            }
        }
    }

    fn span(&mut self, value: &str) -> Result<(), Failure> {
        self.for_seconds = guidance::parse_span(value);
        match self.for_seconds {
            Some(_) => Ok(()),
            None => Err(Failure::usage(format!("--for: '{value}' is no span of time"))
                .hint("As in --for 2h, --for 30m, --for 1d.")),
        }
    }
}

fn unknown(word: &str) -> Failure {
    Failure::usage(format!("unknown flag {word}"))
        .hint("Flags are --pin, --for SPAN and --replace. To begin a text with dashes, write -- before it.")
}

pub fn run(
    world: &World,
    project: &Project,
    session: Option<&str>,
    request: &Request,
    json: bool,
) -> Result<String, Failure> {
    if *request == Request::List {
        let guidance = state::peek(project)?.map(|document| document.guidance()).unwrap_or_default();
        return Ok(if json {
            format!("{}\n", guidance_json(&guidance, world.now))
        } else {
            listing(world, project, &guidance)
        });
    }
    let settings = config::load(world, project, &Default::default()).settings();
    let mut state = Locked::open(project, world.now)?;
    let mut guidance = state.document.guidance();
    guidance.bring_back_to(world.now);
    let expired = guidance.purge_over_age(world.now, settings.guidance_max_age_ms);
    let mut answer = match request {
        Request::Give { list, text, pin, for_seconds, replace } => {
            let mut replaced = Vec::new();
            if *replace {
                replaced = guidance.clear(*list);
            }
            let change = guidance.give(*list, entry(world, session, text, *pin, *for_seconds));
            given(*list, text, &change, &replaced)
        }
        Request::Remove(which) => {
            let gone = guidance.remove(which).ok_or_else(|| {
                Failure::refused(format!("there is no guidance '{}'", clean::excerpt(which, 60)))
                    .hint("`ralph-guidance list` shows what there is.")
            })?;
            format!("removed: {}", clean::excerpt(&gone.text, 200))
        }
        Request::Clear => {
            let count: usize = [List::Encouraged, List::Forbidden, List::Allowed]
                .map(|list| guidance.clear(list).len())
                .iter()
                .sum();
            format!("cleared: {count} removed")
        }
        Request::Allow(id) => {
            let finding = find(world, project, &state.document.findings(), id)?;
            guidance.give(List::Allowed, entry(world, session, &finding.id, false, None));
            format!("allowed: {} ({}), while it stays as it is", finding.id, clean::line(&finding.file))
        }
        Request::List => String::new(),
    };
    let active = guidance.encouraged.len() + guidance.forbidden.len();
    answer.push_str(&format!("; {active} active"));
    if !expired.is_empty() {
        let texts: Vec<_> =
            expired.iter().map(|entry| format!("\"{}\"", clean::excerpt(&entry.text, 60))).collect();
        answer.push_str(&format!(", {} expired and removed: {}", expired.len(), texts.join(", ")));
    }
    state.document.set_guidance(&guidance)?;
    state.save()?;
    Ok(if json { format!("{}\n", guidance_json(&guidance, world.now)) } else { answer })
}

fn entry(world: &World, session: Option<&str>, text: &str, pinned: bool, for_seconds: Option<f64>) -> Entry {
    let session_id = session.filter(|id| state::usable_session_id(id)).map(str::to_owned);
    Entry {
        text: text.to_owned(),
        timestamp: Some(world.now),
        session_id,
        pinned,
        for_seconds,
        ..Entry::default()
    }
}

fn given(list: List, text: &str, change: &Change, replaced: &[Entry]) -> String {
    let word = if list == List::Encouraged { "encouraged" } else { "forbidden" };
    let mut answer = format!("{word}: {}", clean::excerpt(text, 200));
    match change {
        Change::Added => {}
        Change::Refreshed => answer.push_str("; said before, counts from now"),
        Change::Moved(List::Encouraged) => answer.push_str("; replaces: it was encouraged before"),
        Change::Moved(_) => answer.push_str("; replaces: it was forbidden before"),
    }
    if !replaced.is_empty() {
        let texts: Vec<_> =
            replaced.iter().map(|entry| format!("\"{}\"", clean::excerpt(&entry.text, 60))).collect();
        answer.push_str(&format!("; replaces {}", texts.join(", ")));
    }
    answer
}

/// The finding with this id, or the one that begins so: among those of the last scan, else of one now.
fn find(world: &World, project: &Project, known: &[Finding], id: &str) -> Result<Finding, Failure> {
    let id = id.trim();
    let pick = |findings: &[Finding]| {
        let mut matching = findings.iter().filter(|finding| !id.is_empty() && finding.id.starts_with(id));
        matching.next().filter(|first| first.id == id || matching.next().is_none()).cloned()
    };
    pick(known).or_else(|| pick(&scan::now(world, project).findings)).ok_or_else(|| {
        Failure::refused(format!("no finding has the id '{}'", clean::excerpt(id, 60)))
            .hint("`ralph scan` lists the findings with their ids.")
    })
}

fn listing(world: &World, project: &Project, guidance: &Guidance) -> String {
    if guidance.is_empty() {
        return "No guidance. Give some: /ralph:encourage TEXT, /ralph:forbid TEXT\n".into();
    }
    let max_age = config::load(world, project, &Default::default()).settings().guidance_max_age_ms;
    let mut out = String::new();
    let mut number = 0;
    for (title, list) in [
        ("Encouraged", List::Encouraged),
        ("Forbidden", List::Forbidden),
        ("Allowed findings", List::Allowed),
    ] {
        let entries = guidance.list(list);
        if !entries.is_empty() {
            out.push_str(&format!("{title}\n"));
        }
        for entry in entries {
            number += 1;
            let mut notes = vec![guidance::age(entry, world.now).unwrap_or_else(|| "undated".into())];
            if entry.pinned {
                notes.push("pinned".into());
            }
            if let Some(seconds) = entry.for_seconds {
                notes.push(format!("for {}", time::span((seconds * 1000.0) as i64)));
            }
            if entry.over_age(world.now, max_age) {
                notes.push("expired, goes at the next turn".into());
            } else if list != List::Allowed {
                notes.push(if entry.delivered { "delivered".into() } else { "not delivered yet".into() });
            }
            out.push_str(&format!("{number:>3}. {} ({})\n", clean::line(&entry.text), notes.join(", ")));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn give(text: &str) -> Request {
        Request::give(List::Forbidden, text).unwrap_or_else(|failure| panic!("{text}: {failure}"))
    }

    fn parts(text: &str) -> (String, bool, Option<f64>, bool) {
        match give(text) {
            Request::Give { text, pin, for_seconds, replace, .. } => (text, pin, for_seconds, replace),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn flags_stand_around_the_text_and_dashes_within_it_are_text() {
        assert_eq!(parts("never use --force"), ("never use --force".into(), false, None, false));
        assert_eq!(parts("--pin never push"), ("never push".into(), true, None, false));
        assert_eq!(parts("never push --pin --for 2h"), ("never push".into(), true, Some(7200.0), false));
        assert_eq!(parts("--for=30m --replace go slow"), ("go slow".into(), false, Some(1800.0), true));
        assert_eq!(parts("-- --force is bad"), ("--force is bad".into(), false, None, false));
        assert_eq!(
            parts("it's \"$(x)\" `y`\n\tand  more"),
            ("it's \"$(x)\" `y` and more".into(), false, None, false)
        );
        assert_eq!(give("   \u{1b} \n"), Request::List);
        assert_eq!(give(""), Request::List);
    }

    #[test]
    fn mistakes_are_errors() {
        for text in ["--pinn x", "--for soon x", "x --for", "--pin", &"x".repeat(2001)] {
            let taken = Request::give(List::Forbidden, text);
            assert!(taken.is_err() || text == "x --for", "{text}: {taken:?}");
        }
        assert!(Request::give(List::Forbidden, &"x".repeat(2000)).is_ok());
    }
}
