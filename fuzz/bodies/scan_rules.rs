//! Ignore files, rules and globs that came with a repository: a scan answers, and says what it leaves out.

use super::place::Place;
use ralph::core::settings::{Layer, SettingSource, resolve};
use ralph::scan::{ScanBudget, scan};
use serde_json::{Map, Value, json};

pub fn check(bytes: &[u8]) {
    let place = Place::new();
    place.write("project/.gitignore", bytes);
    place.write("project/src/.ignore", bytes);
    place.write("project/src/main.rs", b"fn main() {}\n");
    let text = String::from_utf8_lossy(bytes);
    let rules: Value = text.lines().map(|line| json!({"id": line, "pattern": line, "glob": line})).collect();
    let given: Map<String, Value> =
        [("scan.rules".to_owned(), rules), ("scan.exclude".into(), text.lines().map(Value::from).collect())]
            .into_iter()
            .collect();
    for values in [Map::new(), given] {
        let layer = Layer { source: SettingSource::Project, place: "file".into(), values };
        let found = scan(&place.world, &place.project, &resolve(&[layer]), ScanBudget::Hook);
        assert!(
            found.warnings.iter().all(|warning| !warning.contains(char::is_control)),
            "{:?}",
            found.warnings
        );
        assert!(found.warnings.len() < 30, "more than anyone reads");
    }
}
