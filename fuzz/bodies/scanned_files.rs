//! Files of a repository that the scan reads: whatever is in them, it answers, and what it says of them is one line.

use super::place::Place;
use ralph::core::settings::resolve;
use ralph::scan::{ScanBudget, scan};

/// One name for each kind of file that the rules tell apart.
const NAMES: [&str; 8] =
    [".env", "app.toml", "run.sh", "key.pem", "id_rsa", "main.rs", "page.html", "deep/er/Makefile"];

pub fn check(bytes: &[u8]) {
    let place = Place::new();
    NAMES.iter().for_each(|name| place.write(&format!("project/{name}"), bytes));
    let scan = || scan(&place.world, &place.project, &resolve(&[]), ScanBudget::Command);
    let first = scan();
    assert!(first.complete && first.files == NAMES.len(), "{} files", first.files);
    for finding in &first.findings {
        let said = [&finding.id, &finding.description, &finding.recommendation, &finding.category];
        assert!(said.iter().all(|text| !text.contains(char::is_control)), "{finding:?}");
    }
    let again = scan();
    assert_eq!(again.findings, first.findings, "the same files say something else");
}
