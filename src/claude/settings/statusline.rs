//! The input of a status line, and the command that Claude Code runs for it.

use serde_json::Value;
use std::path::{Path, PathBuf};

#[derive(Debug, PartialEq, Eq)]
pub struct Input {
    pub session_id: String,
    /// Where the session was started, or its current folder.
    pub folder: Option<PathBuf>,
    pub transcript: Option<PathBuf>,
}

/// Parses the input; `None` if it names no session. Fields may be absent, null or of an unexpected type.
pub fn parse(bytes: &[u8]) -> Option<Input> {
    let input: Value = serde_json::from_slice(bytes).ok()?;
    let workspace = &input["workspace"];
    let folders = [&workspace["project_dir"], &workspace["current_dir"], &input["cwd"]];
    let folder = folders.into_iter().filter_map(Value::as_str).find(|folder| !folder.is_empty());
    let transcript = input["transcript_path"].as_str().map(PathBuf::from);
    let session_id = input["session_id"].as_str()?.to_owned();
    Some(Input { session_id, folder: folder.map(PathBuf::from), transcript })
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
