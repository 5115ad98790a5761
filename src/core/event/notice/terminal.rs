//! A desktop notification through a terminal: an escape sequence that most ignore and some show, and the bell.

use super::Notice;
use crate::core::text::clean;

/// What is known of a terminal, from the variables it sets.
#[derive(Clone, Debug, Default)]
pub struct Terminal {
    /// `TERM`
    pub name: String,
    /// `VTE_VERSION` is set.
    pub is_vte: bool,
    /// `TMUX` is set.
    pub in_tmux: bool,
}

const BELL: &str = "\u{7}";
const MAX_COLUMNS: usize = 200;

/// Returns what to write to the terminal.
pub fn sequence(notice: &Notice, terminal: &Terminal) -> String {
    if matches!(terminal.name.as_str(), "" | "dumb" | "linux")
        || terminal.name.starts_with("screen") && !terminal.in_tmux
    {
        return BELL.into();
    }
    // A semicolon separates the parts.
    let text = |text: &str| clean::excerpt(text, MAX_COLUMNS).replace(';', ",");
    let (title, message) = (text(&notice.title), text(&notice.message));
    let has_777 = terminal.is_vte || terminal.name.starts_with("foot") || terminal.name.starts_with("rxvt");
    let notification = match has_777 {
        true => format!("\u{1b}]777;notify;{title};{message}\u{1b}\\"),
        false => format!("\u{1b}]9;{title}: {message}\u{1b}\\"),
    };
    let notification = match terminal.in_tmux {
        // tmux passes on what is wrapped like this, if `allow-passthrough` is on, and drops it otherwise.
        true => format!("\u{1b}Ptmux;{}\u{1b}\\", notification.replace('\u{1b}', "\u{1b}\u{1b}")),
        false => notification,
    };
    notification + BELL
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::outcome::Outcome;
    use crate::core::record::StoredLoop;
    use crate::core::time::Stamp;

    #[test]
    fn each_terminal_gets_what_it_knows_and_no_text_can_end_it() {
        let reason = Some("a;b\u{1b}\\\u{7}\u{9c}c\nd".into());
        let run = StoredLoop { outcome: Some(Outcome::Stuck), reason, ..StoredLoop::default() };
        let notice = Notice::ended(&run, "/p/x", Stamp(0));
        let of =
            |name: &str, is_vte, in_tmux| sequence(&notice, &Terminal { name: name.into(), is_vte, in_tmux });
        let text = "a,b\\c d 0 iterations ·";
        assert_eq!(
            of("xterm-256color", false, false),
            format!("\u{1b}]9;Ralph: stuck · x: {text}\u{1b}\\\u{7}")
        );
        let notify = format!("\u{1b}]777;notify;Ralph: stuck · x;{text}\u{1b}\\\u{7}");
        assert_eq!(of("xterm-256color", true, false), notify);
        assert_eq!(of("foot", false, false), notify);
        assert!(of("tmux-256color", false, true).starts_with("\u{1b}Ptmux;\u{1b}\u{1b}]9;Ralph"));
        for name in ["", "dumb", "linux", "screen"] {
            assert_eq!(of(name, false, false), "\u{7}", "{name}");
        }
    }
}
