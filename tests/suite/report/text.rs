//! What the page and its Markdown say about the scripted night, as snapshots.

use super::night::{Night, night};
use regex::Regex;

/// Returns the text of a page without its pictures and logs, a line for each element that begins one.
fn text_of(page: &str) -> String {
    let replace =
        |text: &str, pattern: &str, by: &str| Regex::new(pattern).unwrap().replace_all(text, by).into_owned();
    let text = replace(
        page,
        r"(?s)<style>.*?</style>|<svg.*?</svg>\n?</svg>|<svg.*?</svg>|<details class=.log.*?</details>",
        "",
    );
    let text = replace(&text, r"</(td|th|dt|span|summary)>", " ");
    let text = replace(&text, r"<[^>]*>", "");
    let text = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&");
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

fn check(name: &str, night: &Night, text: &str) {
    let short = &night.run_id[..8];
    let text = text
        .replace(&night.run_id, "[run id]")
        .replace(short, "[id]")
        .replace(env!("CARGO_PKG_VERSION"), "[version]");
    let text =
        Regex::new(r"`?[^ `<>]*/importer`?").unwrap().replace_all(&text, "[base]/importer").into_owned();
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots/pages");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn the_page_of_a_night() {
    if !crate::report::night::has_git() {
        return;
    }
    let night = night();
    check("report_page", night, &text_of(&night.page));
}

#[test]
fn the_markdown_of_a_night() {
    if !crate::report::night::has_git() {
        return;
    }
    let night = night();
    check("report_markdown", night, &night.markdown);
}

#[test]
fn all_runs() {
    if !crate::report::night::has_git() {
        return;
    }
    let night = night();
    check("report_all", night, &text_of(&night.all));
}
