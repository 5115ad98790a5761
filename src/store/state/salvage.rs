//! What can be saved of a damaged state file. We write it with one record a block of lines, so where a bracket or a quote
//! is missing in one loop's record, the lines still tell where the others are.

use super::Document;
use super::fields::Fields;
use serde_json::value::RawValue;

/// Returns the loops and the other fields that are whole, or nothing if there is no loop among them.
pub fn salvage(text: &str) -> Option<Document> {
    let mut document = Document::default();
    for (name, block) in blocks(text, "  \"") {
        match name {
            "version" => document.version = whole(block)?.parse().ok(),
            "loops" => {
                let whole = |(session, block)| Some((session, whole(block)?));
                let loops = blocks(block, "    \"").filter_map(whole);
                document.loops = Fields(loops.map(|(id, raw)| (id.to_owned(), raw.into())).collect());
            }
            _ => document.rest.0.extend(whole(block).map(|raw| (name.to_owned(), raw.into()))),
        }
    }
    document.changed = true;
    let is_loop = |raw: &str| raw.starts_with('{');
    (!document.newer_than_us() && document.loops.0.iter().any(|(_, raw)| is_loop(raw))).then_some(document)
}

/// Returns each name that begins a line at this depth, with the text up to the next one. A newline inside a string is
/// escaped, so no line begins within one.
fn blocks<'a>(text: &'a str, start: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let begins = |at: &usize| text[*at..].starts_with(start);
    let lines = std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1));
    let starts: Vec<usize> = lines.filter(begins).collect();
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([text.len()]).collect();
    let block = move |(from, to): (usize, usize)| text[from + start.len()..to].split_once("\": ");
    starts.into_iter().zip(ends).filter_map(block)
}

/// Returns the value at the beginning of a block, if it is whole.
fn whole(block: &str) -> Option<&str> {
    let mut values = serde_json::Deserializer::from_str(block).into_iter::<&RawValue>();
    Some(values.next()?.ok()?.get())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::record::StoredLoop;

    fn written() -> String {
        let mut document = Document::default();
        for (session, task) in [("one", "as\n  \"loops\": {"), ("two", "plain"), ("three", "plain")] {
            let task = task.to_owned();
            let run = StoredLoop { run_id: session.into(), task, ..StoredLoop::default() };
            document.set_loop(session, &run).unwrap();
        }
        document.set_scanned_in("wt").unwrap();
        String::from_utf8(document.write()).unwrap()
    }

    fn sessions(document: &Document) -> Vec<String> {
        document.loops().map(|(session, _)| session).collect()
    }

    #[test]
    fn a_lost_bracket_or_quote_costs_its_own_loop() {
        let text = written();
        let second = text.find("\"two\"").unwrap();
        for (what, lost) in [("bracket", "    },\n    \"three\""), ("quote", "\",\n      \"engine\"")] {
            let at = second + text[second..].find(lost).unwrap();
            let keep = lost.trim_start_matches(['}', '"', ' ']);
            let damaged = format!("{}{keep}{}", &text[..at], &text[at + lost.len()..]);
            assert!(Document::parse(damaged.as_bytes()).is_err(), "{what}: {damaged}");
            let saved = salvage(&damaged).unwrap();
            assert_eq!(sessions(&saved), ["one", "three"], "{what}");
            assert_eq!(saved.scanned_in(), "wt", "{what}");
            assert!(Document::parse(&saved.write()).is_ok());
        }
    }

    #[test]
    fn of_a_file_cut_short_the_loops_before_the_cut_are_saved() {
        let text = written();
        let third = text.find("    \"three\"").unwrap();
        assert_eq!(sessions(&salvage(&text[..third + 40]).unwrap()), ["one", "two"]);
        assert!(salvage(&text[..60]).is_none());
    }

    #[test]
    fn what_we_did_not_write_is_not_guessed_at() {
        for text in [
            "",
            "{",
            "[]",
            "\u{0}",
            "{\"loops\":{\"s\":{\"run_id\":\"r\"}",
            "  \"version\": 99,\n  \"loops\": {\n    \"s\": {}",
        ] {
            assert!(salvage(text).is_none(), "{text}");
        }
    }

    #[test]
    fn any_cut_of_any_file_is_taken_without_a_panic() {
        let text = written();
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            let _ = (salvage(&text[..at]), salvage(&text[at..]));
        }
    }
}
