//! `docs/demo.svg`: a recording of `ralph demo`, made from its output.
//!
//! `scripts/record-demo` updates it; otherwise this test checks that it is up to date.

use crate::env::{Env, Program};
use ralph::demo::{PER_LINE, PER_SCENE};
use regex::Regex;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/demo.svg");
const COLUMN: f64 = 7.83;
const ROW: usize = 18;
const MARGIN: usize = 20;
const HEAD: usize = 36;
/// Some viewers collapse spaces, but none collapses non-breaking ones.
const SPACE: &str = "\u{a0}";

const STYLE: &str = r#"text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#c9d1d9;animation:in .25s both}
.h{fill:#fff;font-weight:700}.y{fill:#79c0ff}.r{fill:#7ee787}.d{fill:#6e7681}
@keyframes in{from{opacity:0}}@media (prefers-reduced-motion:reduce){text{animation:none}}"#;

/// Masks what differs between runs: the run id and the seconds.
pub fn masked(text: &str) -> String {
    let text = text.replace(SPACE, " ");
    let text = Regex::new("Starting run [0-9a-f]{8}").unwrap().replace_all(&text, "Starting run 01234567");
    Regex::new(r"(complete · |Duration: +)\d+s").unwrap().replace_all(&text, "${1}0s").into_owned()
}

/// Draws the output; its lines appear at the pace of the demo.
fn picture(output: &str) -> String {
    let rows = output.lines().count();
    let (width, height) = ((80.0 * COLUMN) as usize + 2 * MARGIN, HEAD + rows * ROW + MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" aria-label=\"ralph demo, recorded\">\n<style>{STYLE}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#0d1117\"/>\n\
         <text x=\"{MARGIN}\" y=\"24\" class=\"d\">$ cargo run --release -- demo</text>\n"
    );
    let mut at = Duration::from_millis(500);
    for (row, line) in output.lines().enumerate() {
        at += if line.is_empty() { PER_SCENE } else { PER_LINE };
        if line.is_empty() {
            continue;
        }
        let (y, seconds) = (HEAD + (row + 1) * ROW, at.as_secs_f64());
        let (class, who, mark, said) = spoken(line);
        write!(svg, "<text y=\"{y}\"{class} style=\"animation-delay:{seconds:.1}s\">").unwrap();
        // Each part has its own position, because viewers treat spaces differently.
        for (column, class, part) in [
            (0, " class=\"d\"", who),
            (6, " class=\"d\"", mark),
            (if mark.is_empty() { 0 } else { 8 }, "", said),
        ] {
            let x = MARGIN as f64 + column as f64 * COLUMN;
            if !part.trim().is_empty() {
                write!(svg, "<tspan x=\"{x:.0}\"{class}>{}</tspan>", escaped(part)).unwrap();
            }
        }
        svg.push_str("</text>\n");
    }
    svg + "</svg>\n"
}

/// Returns the class of a line, the speaker, the mark, and the text.
fn spoken(line: &str) -> (&'static str, &str, &str, &str) {
    let byte = |column: usize| line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    let parts = |class| (class, line[..byte(6)].trim(), &line[byte(6)..byte(8)], &line[byte(8)..]);
    match line.chars().nth(6) {
        Some('│') => parts(" class=\"r\""),
        Some('›') => parts(" class=\"y\""),
        _ if line.starts_with("agent ") => parts(""),
        _ if line.starts_with(|c: char| c.is_ascii_digit()) => (" class=\"h\"", "", "", line),
        _ => ("", "", "", line),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace(' ', SPACE)
}

#[test]
fn demo_recording_is_up_to_date() {
    let output = Env::new().call(Program::Ralph).args(&["demo", "--fast"]).run().ok();
    let now = picture(&output);
    if std::env::var_os("RALPH_RECORD").is_some() {
        fs::create_dir_all(Path::new(FILE).parent().unwrap()).unwrap();
        fs::write(FILE, &now).unwrap();
    }
    let recorded = fs::read_to_string(FILE).unwrap_or_default();
    let (recorded_text, now) = (masked(&recorded), masked(&now));
    let other = recorded_text.lines().zip(now.lines()).find(|(recorded, now)| recorded != now);
    assert!(
        recorded_text == now,
        "docs/demo.svg differs from the output of `ralph demo`: run scripts/record-demo\n{other:#?}"
    );
    assert!(recorded.len() < 16 << 10, "the picture is too large for a README: {} bytes", recorded.len());
}
