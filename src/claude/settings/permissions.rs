//! Whether Claude Code may edit files when it gets no answer to its questions. Tried on 2.1.325: without flags and settings
//! `claude -p` is in mode `default` and denies every edit and every command that writes.

use super::ClientSettings;
use serde_json::Value;

/// Modes in which an edit needs a rule or an answer.
const ASKING_MODES: [&str; 2] = ["default", "dontAsk"];
const EDITING_TOOLS: [&str; 4] = ["Edit", "Write", "MultiEdit", "NotebookEdit"];

/// Returns the permission mode if nothing may be edited in it; `mode` is the one that was given for this session.
pub fn mode_without_edits(settings: &ClientSettings, mode: Option<&str>) -> Option<String> {
    let stated = || settings.permissions().find_map(|permissions| permissions.get("defaultMode")?.as_str());
    let mode = mode.or_else(stated).unwrap_or("default");
    let asks = ASKING_MODES.contains(&mode) && !settings.allow_edits();
    (mode == "plan" || asks).then(|| mode.to_owned())
}

impl ClientSettings {
    fn permissions(&self) -> impl Iterator<Item = &Value> {
        self.layers.iter().filter_map(|layer| layer.values.get("permissions"))
    }

    /// Returns whether a rule allows edits, or commands that can edit.
    fn allow_edits(&self) -> bool {
        let rules = self.permissions().filter_map(|permissions| permissions.get("allow")?.as_array());
        let sandboxed =
            |values: &serde_json::Map<String, Value>| values.get("sandbox")?.get("enabled")?.as_bool();
        rules.flatten().filter_map(Value::as_str).any(allows_edits)
            || self.layers.iter().any(|layer| sandboxed(&layer.values) == Some(true))
    }
}

fn allows_edits(rule: &str) -> bool {
    let (tool, what) = rule.split_once('(').unwrap_or((rule, "*)"));
    EDITING_TOOLS.contains(&tool.trim()) || (tool.trim() == "Bash" && matches!(what, "*)" | ":*)"))
}

#[cfg(test)]
mod tests {
    use super::super::{ClientLayer, Scope};
    use super::*;
    use serde_json::json;

    fn settings(files: &[Value]) -> ClientSettings {
        let layer = |values: &Value| ClientLayer {
            scope: Scope::User,
            path: "settings.json".into(),
            values: values.as_object().unwrap().clone(),
            fault: None,
        };
        ClientSettings { layers: files.iter().map(layer).collect() }
    }

    #[test]
    fn nothing_may_be_edited_without_a_mode_or_a_rule() {
        let allow = |rule: &str| json!({"permissions": {"allow": [rule]}});
        let mode = |mode: &str| json!({"permissions": {"defaultMode": mode}});
        for (files, given, expected) in [
            (vec![], None, Some("default")),
            (vec![json!({"permissions": null}), json!({"permissions": {"allow": 7}})], None, Some("default")),
            (vec![], Some("acceptEdits"), None),
            (vec![], Some("bypassPermissions"), None),
            (vec![], Some("auto"), None),
            (vec![], Some("dontAsk"), Some("dontAsk")),
            (vec![mode("acceptEdits")], None, None),
            (vec![mode("acceptEdits")], Some("default"), Some("default")),
            (vec![mode("plan"), mode("acceptEdits")], None, Some("plan")),
            (vec![allow("Edit")], None, None),
            (vec![json!({}), allow("Write(src/**)")], None, None),
            (vec![allow("Bash")], None, None),
            (vec![allow("Bash(*)")], None, None),
            (vec![allow("Bash(npm test)")], None, Some("default")),
            (vec![allow("Read")], None, Some("default")),
            (vec![allow("Edit")], Some("plan"), Some("plan")),
            (vec![json!({"sandbox": {"enabled": true}})], None, None),
        ] {
            let found = mode_without_edits(&settings(&files), given);
            assert_eq!(found.as_deref(), expected, "{files:?} {given:?}");
        }
    }
}
