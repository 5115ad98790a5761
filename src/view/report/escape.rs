//! Text of others in a page: no character of it is taken for markup.

use super::words::TextSpan;
use crate::core::text::clean;

/// Returns a text for HTML, in an element or in a quoted attribute. What hides or reorders text is gone.
pub fn html(text: &str) -> String {
    let text = clean::block(text);
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Escapes text as [`html`] does, and shows what is between two back-quotes as code.
pub fn html_with_code(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return html(text);
    }
    let part = |(index, part): (usize, &&str)| match index % 2 {
        1 => format!("<code>{}</code>", html(part)),
        _ => html(part),
    };
    parts.iter().enumerate().map(part).collect()
}

pub fn html_words(words: &[TextSpan]) -> String {
    let piece = |piece: &TextSpan| match piece {
        TextSpan::Plain(text) => html(text),
        TextSpan::Code(text) => format!("<code>{}</code>", html(text)),
        TextSpan::Quote(text) => format!("<span class=\"q\">{}</span>", html_with_code(text)),
    };
    words.iter().map(piece).collect()
}

/// Returns a text as a code span of Markdown: no link, no mention, no markup, no end of a table cell in it.
pub fn span(text: &str) -> String {
    let text = clean::line(text).replace('|', "¦");
    if text.is_empty() {
        return String::new();
    }
    let fence = "`".repeat(longest_run(&text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Returns a text as a block of Markdown in which nothing is markup.
pub fn block(text: &str) -> String {
    let text = clean::block(text.trim_end());
    let fence = "`".repeat(longest_run(&text).max(2) + 1);
    format!("{fence}text\n{text}\n{fence}\n")
}

pub fn markdown_words(words: &[TextSpan]) -> String {
    let piece = |piece: &TextSpan| match piece {
        TextSpan::Plain(text) => text.replace('|', "¦"),
        TextSpan::Code(text) | TextSpan::Quote(text) => span(text),
    };
    words.iter().map(piece).collect()
}

/// Returns the length of the longest row of back-quotes.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_is_taken_for_markup() {
        assert_eq!(
            html("</script><img src=x onerror='a' \"b\"> & &amp;"),
            "&lt;/script&gt;&lt;img src=x onerror=&#39;a&#39; &quot;b&quot;&gt; &amp; &amp;amp;"
        );
        assert_eq!(html("a\u{1b}[31m\u{202e}b\u{200b}\u{0}\u{feff}c\n\td"), "a[31mbc\n\td");
        assert_eq!(html("שלום"), "שלום", "letters of every script stay");
    }

    #[test]
    fn what_is_between_back_quotes_is_code() {
        assert_eq!(html_with_code("`a < b` failed"), "<code>a &lt; b</code> failed");
        assert_eq!(html_with_code("`<b>` and `"), "`&lt;b&gt;` and `", "not all of them have an end");
        let quoted = TextSpan::Quote("`make` failed".into());
        assert_eq!(html_words(&[quoted]), "<span class=\"q\"><code>make</code> failed</span>");
    }

    #[test]
    fn markdown_of_others_is_shown_as_it_is_written() {
        assert_eq!(span("![x](http://y) @you #1 <b>"), "`![x](http://y) @you #1 <b>`");
        assert_eq!(span("a `b` ``c`` | d\n\n# e"), "```a `b` ``c`` ¦ d # e```");
        assert_eq!(span("`a"), "`` `a ``");
        assert_eq!(span("\u{1b}\u{200b} "), "");
        assert_eq!(block("x\n```\n<script>"), "````text\nx\n```\n<script>\n````\n");
    }
}
