//! Strings as JavaScript writes them into JSON.

/// Reads a JSON string, with half a character replaced. Returns `None` for any other value.
pub fn read(json: &str) -> Option<String> {
    serde_json::from_str(json).ok().or_else(|| serde_json::from_str(&replace_lone_surrogates(json)?).ok())
}

/// Replaces each half of a surrogate pair (`\udXXX`), which JavaScript writes when it cuts a string inside a
/// character, by the replacement character.
fn replace_lone_surrogates(json: &str) -> Option<String> {
    json.starts_with('"').then_some(())?;
    let unit = |at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut out, mut at) = (String::with_capacity(json.len()), 0);
    while let Some(c) = json[at..].chars().next() {
        let step = match (unit(at), c) {
            (Some(0xd800..=0xdbff), _) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                out.push('\u{fffd}');
                at += 6;
                continue;
            }
            (Some(_), _) => 6,
            (None, '\\') => 1 + json[at + 1..].chars().next().map_or(0, char::len_utf8),
            (None, c) => c.len_utf8(),
        };
        out.push_str(&json[at..at + step]);
        at += step;
    }
    Some(out)
}
