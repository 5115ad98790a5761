//! The input of a status line, and the command that Claude Code runs for it.

use crate::core::decide::figures::{self, ClientFigures, FigureSource, Window};
use crate::core::time::Stamp;
use serde_json::Value;
use std::path::{Path, PathBuf};

#[derive(Debug, PartialEq)]
pub struct Input {
    pub session_id: String,
    /// Where the session was started, or its current folder.
    pub folder: Option<PathBuf>,
    pub transcript: Option<PathBuf>,
    pub told: ClientFigures,
}

/// Parses the input; `None` if it names no session. Fields may be absent, null or of an unexpected type.
pub fn parse(bytes: &[u8]) -> Option<Input> {
    let input: Value = serde_json::from_slice(bytes).ok()?;
    let workspace = &input["workspace"];
    let folders = [&workspace["project_dir"], &workspace["current_dir"], &input["cwd"]];
    let folder = folders.into_iter().filter_map(Value::as_str).find(|folder| !folder.is_empty());
    let transcript = input["transcript_path"].as_str().map(PathBuf::from);
    let session_id = input["session_id"].as_str()?.to_owned();
    let told = client_figures(&input);
    Some(Input { session_id, folder: folder.map(PathBuf::from), transcript, told })
}

/// Reads what the client tells of cost, context and quota. What is missing or cannot be true is unknown.
fn client_figures(input: &Value) -> ClientFigures {
    let cost = &input["cost"];
    let number = |value: &Value| value.as_f64().filter(|number| number.is_finite() && *number >= 0.0);
    let context = &input["context_window"];
    // A client may say how many tokens there are and not how much of the context they fill.
    let used = || {
        let usage = &context["current_usage"];
        let parts = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
        let size = number(&context["context_window_size"]).filter(|size| *size > 0.0)?;
        let tokens: Option<f64> = parts.iter().map(|part| number(&usage[part])).sum();
        Some(tokens? * 100.0 / size)
    };
    let windows = input["rate_limits"].as_object();
    let windows = windows.into_iter().flatten().filter_map(|(name, window)| {
        Window::new(name, number(&window["used_percentage"]), Stamp::of_client(&window["resets_at"]))
    });
    ClientFigures {
        source: if input["module"] == true { FigureSource::Module } else { FigureSource::StatusLine },
        cost_usd: figures::usable_usd(number(&cost["total_cost_usd"])),
        began_at: Stamp::of_client(&cost["started_at"]),
        duration_ms: number(&cost["total_duration_ms"]).map(|ms| ms as i64),
        api_duration_ms: cost["total_api_duration_ms"].as_f64().map(|ms| ms as i64),
        context_percent: figures::usable_percent(number(&context["used_percentage"]).or_else(used)),
        windows: figures::usable_windows(windows),
    }
}

/// Returns the shell command that runs `ralph statusline` with this program.
pub fn command(program: &Path) -> String {
    let program = program.to_string_lossy();
    // On Windows, Claude Code uses the shell of Git, in which a backslash is an escape.
    let program = if cfg!(windows) { program.replace('\\', "/") } else { program.into_owned() };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | ':');
    match program.chars().all(plain) {
        true => format!("{program} statusline"),
        false => format!("'{}' statusline", program.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_folder_wins_and_nulls_are_ignored() {
        let cases = [
            (
                r#"{"session_id":"s","cwd":"/a","workspace":{"current_dir":"/b","project_dir":"/c"}}"#,
                Some("/c"),
            ),
            (
                r#"{"session_id":"s","cwd":"/a","workspace":{"current_dir":"/b","project_dir":null}}"#,
                Some("/b"),
            ),
            (r#"{"session_id":"s","cwd":"/a","workspace":null,"model":null}"#, Some("/a")),
            (r#"{"session_id":"s"}"#, None),
        ];
        for (text, folder) in cases {
            let input = parse(text.as_bytes()).unwrap();
            assert_eq!((input.session_id.as_str(), input.folder), ("s", folder.map(PathBuf::from)), "{text}");
        }
        for text in ["", "{", "[]", "{}", r#"{"session_id":null}"#, r#"{"session_id":7}"#] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn figures_are_read_and_what_cannot_be_true_is_unknown() {
        let figures_of = |text: &str| parse(text.as_bytes()).unwrap().told;
        let whole = figures_of(
            r#"{"session_id":"s","cost":{"total_cost_usd":1.25,"total_duration_ms":9000,"total_api_duration_ms":4000},
                "context_window":{"used_percentage":41},
                "rate_limits":{"five_hour":{"used_percentage":92.5,"resets_at":1794816000},
                               "seven_day":{"used_percentage":250,"resets_at":"2026-11-20T00:00:00Z"}}}"#,
        );
        let five = Window::new("five_hour", Some(92.5), Some(Stamp(1_794_816_000_000))).unwrap();
        assert_eq!(whole.windows, [five], "250 % is no level");
        assert_eq!((whole.cost_usd, whole.context_percent), (Some(1.25), Some(41.0)));
        assert_eq!((whole.duration_ms, whole.api_duration_ms), (Some(9000), Some(4000)));
        let counted = figures_of(
            r#"{"session_id":"s","context_window":{"used_percentage":null,"context_window_size":200000,
                "current_usage":{"input_tokens":1000,"cache_creation_input_tokens":0,"cache_read_input_tokens":99000}}}"#,
        );
        assert_eq!(counted.context_percent, Some(50.0));
        for odd in [
            r#"{"session_id":"s"}"#,
            r#"{"session_id":"s","cost":null,"context_window":null,"rate_limits":null}"#,
            r#"{"session_id":"s","cost":{"total_cost_usd":-1},"context_window":{"used_percentage":"half"},"rate_limits":[1]}"#,
            r#"{"session_id":"s","cost":7,"rate_limits":{"five_hour":null,"seven_day":{"resets_at":5}}}"#,
        ] {
            assert_eq!(figures_of(odd), ClientFigures::default(), "{odd}");
        }
    }

    #[test]
    fn special_characters_in_the_path_are_quoted() {
        let cases = [
            ("/home/u/.local/share/ralph", "/home/u/.local/share/ralph statusline"),
            ("/home/ü b/ralph", "'/home/ü b/ralph' statusline"),
            ("/home/o'neil/$(x)/ralph", r"'/home/o'\''neil/$(x)/ralph' statusline"),
        ];
        for (path, expected) in cases {
            assert_eq!(command(Path::new(path)), expected);
        }
    }
}
