//! `ralph-guidance`: what the user encourages, forbids and allows.

use super::scan;
use crate::cli::{Failure, Project, World};
use crate::core::guidance::finding::Finding;
use crate::core::guidance::{self, Change, Entry, List, MAX_TEXT_CHARS};
use crate::core::text::clean;
use crate::store::config;
use crate::store::state::{self, Locked};
use crate::view;

#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    Give { list: List, text: String, options: Options },
    List,
    Remove(String),
    Clear,
    Allow(String),
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    pub pin: bool,
    pub for_seconds: Option<f64>,
    pub replace: bool,
}

impl Request {
    /// Returns the request for a text; without text or options it is the list.
    pub fn give(list: List, text: &str, options: Options) -> Result<Request, Failure> {
        let text = clean::line(text);
        match text.chars().count() {
            0 if options == Options::default() => Ok(Request::List),
            0 => Err(Failure::usage("no text given")),
            1..=MAX_TEXT_CHARS => Ok(Request::Give { list, text, options }),
            count => {
                Err(Failure::usage(format!("text too long: {count} characters (at most {MAX_TEXT_CHARS})")))
            }
        }
    }

    /// Parses the text of a slash command. Flags come before or after the text; a word with dashes within it is text,
    /// as in "never use --force".
    pub fn from_text(list: List, text: &str) -> Result<Request, Failure> {
        // White space is folded in the end, so nothing is lost by taking the text word by word.
        let mut words: &[&str] = &text.split_whitespace().collect::<Vec<_>>();
        let mut options = Options::default();
        while let [word, rest @ ..] = words
            && word.starts_with("--")
        {
            words = match *word {
                "--" => return Request::give(list, &rest.join(" "), options),
                "--for" => {
                    options.set_for(rest.first().copied().unwrap_or_default())?;
                    rest.get(1..).unwrap_or_default()
                }
                word if options.take(word)? => rest,
                word => return Err(unknown(word)),
            };
        }
        loop {
            words = match words {
                [rest @ .., "--for", value] => {
                    options.set_for(value)?;
                    rest
                }
                [rest @ .., word] if options.take(word)? => rest,
                _ => return Request::give(list, &words.join(" "), options),
            };
        }
    }
}

impl Options {
    /// Takes a word if it is a flag by itself.
    fn take(&mut self, word: &str) -> Result<bool, Failure> {
        match (word, word.strip_prefix("--for=")) {
            ("--pin", _) => self.pin = true,
            ("--replace", _) => self.replace = true,
            (_, Some(value)) => self.set_for(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub fn set_for(&mut self, value: &str) -> Result<(), Failure> {
        let seconds = guidance::parse_span(value).ok_or_else(|| {
            Failure::usage(format!("invalid value for --for: '{value}'"))
                .hint("use a duration such as 30m, 2h or 1d")
        })?;
        self.for_seconds = Some(seconds);
        Ok(())
    }
}

fn unknown(word: &str) -> Failure {
    Failure::usage(format!("unknown flag: {word}"))
        .hint("flags are --pin, --for DURATION and --replace; put -- before a text that starts with dashes")
}

pub fn run(
    world: &World,
    project: &Project,
    session: Option<&str>,
    request: &Request,
    json: bool,
) -> Result<String, Failure> {
    let max_age = config::load(world, project).settings().guidance_max_age_ms;
    let as_json = |guidance| format!("{}\n", view::guidance::json(guidance, world.now));
    if *request == Request::List {
        let guidance = state::peek(project)?.map(|document| document.guidance()).unwrap_or_default();
        return Ok(if json {
            as_json(&guidance)
        } else {
            view::guidance::listing(&guidance, world.now, max_age)
        });
    }
    let mut state = Locked::open(project, world.now)?;
    let mut guidance = state.document.guidance();
    guidance.bring_back_to(world.now);
    let expired = guidance.purge_over_age(world.now, max_age);
    let mut answer = match request {
        Request::Give { list, text, options } => {
            let replaced = if options.replace { guidance.clear(*list) } else { Vec::new() };
            let change = guidance.give(*list, entry(world, session, text, *options));
            given(*list, text, &change, &replaced)
        }
        Request::Remove(which) => {
            let removed = guidance.remove(which).ok_or_else(|| {
                Failure::refused(format!("no such guidance: '{}'", clean::excerpt(which, 60)))
                    .hint("`ralph-guidance list` shows all guidance")
            })?;
            format!("removed: {}", clean::excerpt(&removed.text, 200))
        }
        Request::Clear => {
            let lists = [List::Encouraged, List::Forbidden, List::Allowed];
            let count: usize = lists.map(|list| guidance.clear(list).len()).iter().sum();
            format!("cleared: {count} removed")
        }
        Request::Allow(id) => {
            let finding = find(world, project, &state.document.findings(), id)?;
            guidance.give(List::Allowed, entry(world, session, &finding.id, Options::default()));
            format!("allowed: {} ({}) until it changes", finding.id, clean::line(&finding.file))
        }
        Request::List => String::new(),
    };
    answer.push_str(&format!("; {} active", guidance.encouraged.len() + guidance.forbidden.len()));
    if !expired.is_empty() {
        answer.push_str(&format!(", {} expired and removed: {}", expired.len(), guidance::quoted(&expired)));
    }
    state.document.set_guidance(&guidance)?;
    state.save()?;
    Ok(if json { as_json(&guidance) } else { answer })
}

fn entry(world: &World, session: Option<&str>, text: &str, options: Options) -> Entry {
    Entry {
        text: text.to_owned(),
        timestamp: Some(world.now),
        session_id: session.filter(|id| state::usable_session_id(id)).map(str::to_owned),
        pinned: options.pin,
        for_seconds: options.for_seconds,
        ..Entry::default()
    }
}

fn given(list: List, text: &str, change: &Change, replaced: &[Entry]) -> String {
    let word = if list == List::Encouraged { "encouraged" } else { "forbidden" };
    let change = match change {
        Change::Added => "",
        Change::Refreshed => "; already there, counts from now",
        Change::Moved(List::Encouraged) => "; it was encouraged before",
        Change::Moved(_) => "; it was forbidden before",
    };
    let replaced = match replaced {
        [] => String::new(),
        replaced => format!("; replaces {}", guidance::quoted(replaced)),
    };
    format!("{word}: {}{change}{replaced}", clean::excerpt(text, 200))
}

/// Finds a finding by its id or the beginning of it, in the last scan or else in a new one.
fn find(world: &World, project: &Project, known: &[Finding], id: &str) -> Result<Finding, Failure> {
    let id = id.trim();
    let pick = |findings: &[Finding]| {
        let mut matching = findings.iter().filter(|finding| !id.is_empty() && finding.id.starts_with(id));
        matching.next().filter(|first| first.id == id || matching.next().is_none()).cloned()
    };
    pick(known).or_else(|| pick(&scan::now(world, project).findings)).ok_or_else(|| {
        Failure::refused(format!("no such finding: '{}'", clean::excerpt(id, 60)))
            .hint("`ralph scan` lists the findings with their ids")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn give(text: &str) -> Request {
        Request::from_text(List::Forbidden, text).unwrap_or_else(|failure| panic!("{text}: {failure}"))
    }

    fn parts(text: &str) -> (String, bool, Option<f64>, bool) {
        match give(text) {
            Request::Give { text, options: Options { pin, for_seconds, replace }, .. } => {
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
            let taken = Request::from_text(List::Forbidden, text);
            assert!(taken.is_err() || text == "x --for", "{text}: {taken:?}");
        }
        assert!(Request::from_text(List::Forbidden, &"x".repeat(2000)).is_ok());
    }
}
