//! Tests that a change deleted, skipped or removed, as far as its lines tell. A hint for a reviewer, not a proof.

use crate::core::text::clean;
use crate::store::project::commits;
use regex::Regex;
use std::sync::LazyLock;

/// More are not listed.
const MAX_LISTED: usize = 50;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weakened {
    /// Test files that are gone.
    pub deleted: Vec<String>,
    /// Lines that skip a test or let only some run: the file and the line.
    pub skipped: Vec<(String, String)>,
    /// Files that have fewer tests than before, and how many fewer.
    pub fewer: Vec<(String, usize)>,
}

impl Weakened {
    pub fn is_empty(&self) -> bool {
        self.deleted.is_empty() && self.skipped.is_empty() && self.fewer.is_empty()
    }
}

// Only what needs no table of Unicode: the shipped program has none.
static TEST_FILE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(^|/)([Tt]ests?|[Ss]pecs?|__tests__)/|(^|/)test_[^/]*$|(^|/)tests?\.[a-z]+$",
        r"|[._-]([Tt]ests?|[Ss]pec)\.[a-z]+$|[a-z]Tests?\.[a-z]+$",
    ))
    .ok()
});

/// What skips a test in Rust, Python, JavaScript, Go, Java, Kotlin, C#, Swift and PHP.
static SKIPS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"#\[ignore[ =\]]|@(pytest\.mark\.)?(skip|skipif|xfail)([^a-zA-Z_]|$)|pytest\.skip\(",
        r"|@unittest\.(skip|expectedFailure)|(^|[^a-zA-Z_.])(it|test|describe|context|suite)\.(skip|todo|only|fixme)[^a-zA-Z_]",
        r"|(^|[^a-zA-Z_.])(xit|xtest|xdescribe|fit|fdescribe)\(|(^|[^a-zA-Z_])[tb]\.Skip(f|Now)?\(",
        r"|@(Disabled|Ignore)([^a-zA-Z_]|$)|\[(Ignore|Fact\(Skip|Theory\(Skip)|XCTSkip|markTestSkipped",
    ))
    .ok()
});

static DEFINES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^[ \t]*(#\[([a-z_]+::)*test[\](]|(async )?def test_|(it|test)(\.each)?\(|func Test[A-Z_a-z0-9]*\(",
        r"|@Test([^a-zA-Z_]|$)|\[(Fact|Theory|Test|TestMethod)[\](,]|public function test)",
    ))
    .ok()
});

fn matches(pattern: &Option<Regex>, text: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

/// A file of the patch, while it is read.
#[derive(Default)]
struct File {
    path: String,
    is_deleted: bool,
    added: usize,
    removed: usize,
}

/// Reads a patch without context, as `git diff --unified=0` prints it.
pub fn of_patch(patch: &str) -> Weakened {
    let mut found = Weakened::default();
    let mut file = File::default();
    let (mut removed_left, mut added_left) = (0u64, 0u64);
    for line in patch.lines() {
        if removed_left > 0 && line.starts_with('-') {
            removed_left -= 1;
            file.removed += usize::from(matches(&DEFINES, &line[1..]));
        } else if added_left > 0 && line.starts_with('+') {
            added_left -= 1;
            let text = &line[1..];
            file.added += usize::from(matches(&DEFINES, text));
            if found.skipped.len() < MAX_LISTED && is_short(text) && matches(&SKIPS, text) {
                found.skipped.push((file.path.clone(), clean::excerpt(text, 120)));
            }
        } else if let Some(counts) = line.strip_prefix("@@ ") {
            (removed_left, added_left) = hunk(counts);
        } else if line.starts_with("diff --git ") {
            found.take(std::mem::take(&mut file));
            (removed_left, added_left) = (0, 0);
        } else if line.starts_with("deleted file mode") {
            file.is_deleted = true;
        } else if let Some(path) = line.strip_prefix("--- ").or_else(|| line.strip_prefix("+++ "))
            && path != "/dev/null"
        {
            let path = commits::unquoted(path);
            file.path = clean::excerpt(&clean::visible(path.get(2..).unwrap_or_default()), 160);
        }
    }
    found.take(file);
    found
}

/// Returns whether a line can be from a program, not from a generated file.
fn is_short(text: &str) -> bool {
    text.len() < 1000
}

impl Weakened {
    fn take(&mut self, file: File) {
        if file.is_deleted && matches(&TEST_FILE, &file.path) {
            if self.deleted.len() < MAX_LISTED {
                self.deleted.push(file.path);
            }
        } else if file.removed > file.added && self.fewer.len() < MAX_LISTED {
            self.fewer.push((file.path, file.removed - file.added));
        }
    }
}

/// Returns how many lines a hunk removes and adds, from `-12,3 +12,0 @@`.
fn hunk(counts: &str) -> (u64, u64) {
    let lines = |range: Option<&str>| {
        let range = range.unwrap_or_default();
        range.split_once(',').map_or(1, |(_, lines)| lines.parse().unwrap_or(0))
    };
    let mut ranges = counts.split(' ');
    (lines(ranges.next()), lines(ranges.next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deleted_skipped_and_missing_tests_are_told() {
        let patch = "diff --git a/tests/old.rs b/tests/old.rs\ndeleted file mode 100644\n--- a/tests/old.rs\n+++ /dev/null\n\
                     @@ -1,2 +0,0 @@\n-#[test]\n-fn a() {}\n\
                     diff --git a/src/lib.rs b/src/lib.rs\n--- a/src/lib.rs\n+++ b/src/lib.rs\n\
                     @@ -5,2 +5 @@\n-#[test]\n-fn b() {}\n+#[ignore = \"flaky\"]\n\
                     diff --git a/web/a.spec.ts b/web/a.spec.ts\n--- a/web/a.spec.ts\n+++ b/web/a.spec.ts\n\
                     @@ -1 +1 @@\n-it('adds', () => {\n+it.skip('adds', () => {\n\
                     @@ -8,0 +9,2 @@\n+++ b/not a header\n+it('subtracts', () => {\n\
                     diff --git a/notes.md b/notes.md\ndeleted file mode 100644\n--- a/notes.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
        let found = of_patch(patch);
        assert_eq!(found.deleted, ["tests/old.rs"]);
        let skipped = [("src/lib.rs", "#[ignore = \"flaky\"]"), ("web/a.spec.ts", "it.skip('adds', () => {")];
        assert_eq!(found.skipped, skipped.map(|(file, line)| (file.to_owned(), line.to_owned())));
        assert_eq!(found.fewer, [("src/lib.rs".to_owned(), 1)]);
    }

    #[test]
    fn work_on_tests_is_no_offence() {
        let patch = "diff --git a/tests/a.py b/tests/a.py\n--- a/tests/a.py\n+++ b/tests/a.py\n@@ -1,2 +1,3 @@\n\
                     -def test_one():\n-    pass\n+def test_one_renamed():\n+def test_two():\n+    skip_this = 1\n";
        assert!(of_patch(patch).is_empty());
        for rubbish in ["", "@@", "@@ -x,y", "--- \n+++ \n@@ -99999999999999999999 +1 @@\n+", "diff --git "] {
            assert!(of_patch(rubbish).is_empty(), "{rubbish:?}");
        }
    }

    #[test]
    fn what_skips_a_test_is_known_in_many_languages() {
        for (line, skips) in [
            ("    #[ignore]", true),
            ("#[ignore = \"slow\"]", true),
            ("#[ignored_by]", false),
            ("@pytest.mark.skip(reason=\"x\")", true),
            ("@pytest.mark.skipif(x)", true),
            ("    pytest.skip(\"x\")", true),
            ("@unittest.skip(\"x\")", true),
            ("it.only('x', () => {", true),
            ("  describe.skip('x')", true),
            ("xit('x')", true),
            ("exit(1)", false),
            ("split.only.x", false),
            ("\tt.Skip(\"x\")", true),
            ("@Disabled", true),
            ("@Disabled(\"x\")", true),
            ("items.skip(1)", false),
            ("iter.skip_while(x)", false),
        ] {
            assert_eq!(matches(&SKIPS, line), skips, "{line}");
        }
    }

    #[test]
    fn a_test_file_is_known_by_its_name() {
        for (path, is_test) in [
            ("tests/a.rs", true),
            ("src/parser/tests.rs", true),
            ("src/parser_test.go", true),
            ("web/a.test.ts", true),
            ("spec/models/user_spec.rb", true),
            ("src/UserTest.java", true),
            ("pkg/test_a.py", true),
            ("src/latest.rs", false),
            ("contest/a.rs", false),
            ("docs/testing.md", false),
        ] {
            assert_eq!(matches(&TEST_FILE, path), is_test, "{path}");
        }
    }
}
