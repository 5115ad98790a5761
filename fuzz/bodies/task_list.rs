//! Lists and loops that other tools wrote: a checklist, a `prd.json`, the official plugin's file.

use ralph::core::request::import::official;
use ralph::core::tasks::{checklist, is_done, mode, pick, transitions, validate};

pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let list = checklist(&text);
    assert_eq!(pick(&list, mode(&list, false)).is_none(), is_done(&list, false), "open, and nothing to do");
    assert_eq!(transitions(&list, &list, mode(&list, false)), Ok(()), "nothing changed");
    for story in &list.stories {
        assert!(
            !story.id.is_empty() && !story.id.chars().any(char::is_control),
            "not safe to show: {story:?}"
        );
    }
    let fence = "~".repeat(text.split(|c| c != '~').map(str::len).max().unwrap_or(0).max(2) + 1);
    assert!(checklist(&format!("{fence}\n{text}\n{fence}")).stories.is_empty(), "taken from a fence");
    match official(&text) {
        Ok(read) => assert_eq!(read.prompt, read.prompt.trim()),
        Err(fault) => {
            assert!((1..=text.split('\n').count()).contains(&fault.line), "no such line: {fault}");
            assert!(!fault.to_string().chars().any(char::is_control), "not safe to show: {fault:?}");
        }
    }
    if let Ok(document) = serde_json::from_slice(bytes)
        && let Ok(list) = validate(&document)
    {
        assert_eq!(pick(&list, mode(&list, true)).is_none(), is_done(&list, true), "open, and nothing to do");
    }
}
