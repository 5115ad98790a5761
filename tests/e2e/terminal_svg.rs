//! A terminal's screen with its colours, as an SVG that browsers and image viewers show alike.

use std::fmt::Write;

const COLUMN: f64 = 7.83;
const ROW: usize = 18;
const MARGIN: usize = 20;
const HEAD: usize = 36;
const TEXT_COLOUR: u32 = 0xc9_d1d9;

/// Some viewers collapse spaces, but none collapses those that do not break.
const SPACE: &str = "\u{a0}";

const STYLE: &str = r#"text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#c9d1d9}
.b{font-weight:700}.d{opacity:.65}.i{font-style:italic}"#;

/// The first sixteen colours of a terminal.
const BASIC: [u32; 16] = [
    0x48_4f58, 0xff_7b72, 0x3f_b950, 0xd2_9922, 0x58_a6ff, 0xbc_8cff, 0x39_c5cf, 0xb1_bac4, 0x6e_7681,
    0xff_a198, 0x56_d364, 0xe3_b341, 0x79_c0ff, 0xd2_a8ff, 0x56_d4dd, 0xff_ffff,
];

#[derive(Clone, Copy, Default, PartialEq)]
struct Style {
    colour: Option<u32>,
    background: Option<u32>,
    bold: bool,
    dim: bool,
    italic: bool,
}

/// Text of one style, and the column it begins in.
struct Run {
    column: usize,
    style: Style,
    text: String,
}

/// Renders what `tmux capture-pane -e -p` printed.
pub fn picture(title: &str, screen: &str, columns: usize) -> String {
    let rows = screen.lines().count();
    let (width, height) = ((columns as f64 * COLUMN) as usize + 2 * MARGIN, HEAD + rows * ROW + MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"A Ralph loop in Claude Code\">\n\
         <style>{STYLE}</style>\n<rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#0d1117\"/>\n\
         <text x=\"{MARGIN}\" y=\"24\" class=\"d\">{}</text>\n",
        escaped(title)
    );
    let mut style = Style::default();
    for (row, line) in screen.lines().enumerate() {
        let (runs, after) = runs(line, style);
        style = after;
        let y = HEAD + (row + 1) * ROW;
        for run in runs.iter().filter(|run| run.style.background.is_some()) {
            let (x, length) = (left(run.column), run.text.chars().count() as f64 * COLUMN);
            let (top, colour) = (y - 13, run.style.background.unwrap_or_default());
            writeln!(
                svg,
                "<rect x=\"{x:.0}\" y=\"{top}\" width=\"{length:.0}\" height=\"{ROW}\" fill=\"#{colour:06x}\"/>"
            )
            .unwrap();
        }
        let shown: Vec<&Run> = runs.iter().filter(|run| !run.text.trim().is_empty()).collect();
        if shown.is_empty() {
            continue;
        }
        write!(svg, "<text y=\"{y}\">").unwrap();
        for run in shown {
            write!(
                svg,
                "<tspan x=\"{:.0}\"{}>{}</tspan>",
                left(run.column),
                run.style.attributes(),
                escaped(&run.text)
            )
            .unwrap();
        }
        svg.push_str("</text>\n");
    }
    svg + "</svg>\n"
}

/// Returns the text of a picture, line by line.
pub fn text(svg: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for row in svg.lines().filter_map(|line| line.strip_prefix("<text y=\"")) {
        let (y, row) = row.split_once("\">").unwrap();
        lines.resize((y.parse::<usize>().unwrap() - HEAD) / ROW, String::new());
        let line = lines.last_mut().unwrap();
        for part in row.split("<tspan x=\"").skip(1) {
            let (x, part) = part.split_once('"').unwrap();
            let column = ((x.parse::<f64>().unwrap() - MARGIN as f64) / COLUMN).round() as usize;
            let (_, part) = part.split_once('>').unwrap();
            let said = part.split("</tspan>").next().unwrap();
            let said =
                said.replace(SPACE, " ").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
            *line = format!("{line:column$}{said}");
        }
    }
    trimmed(&lines.join("\n"))
}

/// Returns the screen's text without its colours.
pub fn plain(screen: &str) -> String {
    let mut style = Style::default();
    let mut text = String::new();
    for line in screen.lines() {
        let (runs, after) = runs(line, style);
        style = after;
        runs.iter().for_each(|run| text.push_str(&run.text));
        text.push('\n');
    }
    trimmed(&text)
}

fn trimmed(text: &str) -> String {
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

/// Cuts a line into runs of one style; also returns the style in which it ends.
fn runs(line: &str, mut style: Style) -> (Vec<Run>, Style) {
    let mut found: Vec<Run> = Vec::new();
    let mut column = 0;
    let mut rest = line;
    while !rest.is_empty() {
        if let Some((codes, after)) = rest.strip_prefix("\u{1b}[").and_then(|code| code.split_once('m')) {
            style.apply(codes);
            rest = after;
            continue;
        }
        let end = rest.char_indices().skip(1).find(|(_, c)| *c == '\u{1b}').map_or(rest.len(), |(at, _)| at);
        let (text, after) = rest.split_at(end);
        // Viewers drop the spaces at the beginning of a run, so they are a run of their own.
        let (spaces, words) = text.split_at(text.len() - text.trim_start().len());
        for part in [spaces, words].into_iter().filter(|part| !part.is_empty()) {
            found.push(Run { column, style, text: part.to_owned() });
            column += part.chars().count();
        }
        rest = after;
    }
    (found, style)
}

impl Style {
    fn apply(&mut self, codes: &str) {
        let mut codes = codes.split(';').map(|code| code.parse::<u32>().unwrap_or(0));
        while let Some(code) = codes.next() {
            match code {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                3 => self.italic = true,
                22 => (self.bold, self.dim) = (false, false),
                23 => self.italic = false,
                30..=37 => self.colour = Some(BASIC[code as usize - 30]),
                90..=97 => self.colour = Some(BASIC[code as usize - 82]),
                40..=47 => self.background = Some(BASIC[code as usize - 40]),
                39 => self.colour = None,
                49 => self.background = None,
                38 => self.colour = extended(&mut codes),
                48 => self.background = extended(&mut codes),
                _ => {}
            }
        }
    }

    fn attributes(self) -> String {
        let class: String =
            [(self.bold, "b"), (self.dim, "d"), (self.italic, "i")].into_iter().filter(|(set, _)| *set).fold(
                String::new(),
                |all, (_, name)| if all.is_empty() { name.to_owned() } else { format!("{all} {name}") },
            );
        let class = if class.is_empty() { class } else { format!(" class=\"{class}\"") };
        let fill = self
            .colour
            .filter(|colour| *colour != TEXT_COLOUR)
            .map(|colour| format!(" fill=\"#{colour:06x}\""));
        class + &fill.unwrap_or_default()
    }
}

/// Reads `5;N` (one of 256 colours) or `2;R;G;B`.
fn extended(codes: &mut impl Iterator<Item = u32>) -> Option<u32> {
    match codes.next()? {
        5 => codes.next().map(indexed),
        2 => Some((codes.next()? << 16) | (codes.next()? << 8) | codes.next()?),
        _ => None,
    }
}

fn indexed(index: u32) -> u32 {
    let level = |step: u32| if step == 0 { 0 } else { 55 + 40 * step };
    match index {
        0..=15 => BASIC[index as usize],
        16..=231 => {
            let cube = index - 16;
            (level(cube / 36) << 16) | (level(cube / 6 % 6) << 8) | level(cube % 6)
        }
        _ => (8 + 10 * index.saturating_sub(232).min(23)) * 0x01_0101,
    }
}

fn left(column: usize) -> f64 {
    MARGIN as f64 + column as f64 * COLUMN
}

fn escaped(text: &str) -> String {
    // Few fonts have the client's corner.
    let text = text.replace('⎿', "└");
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace(' ', SPACE)
}
