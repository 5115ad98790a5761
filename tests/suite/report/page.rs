//! The page in a browser: what it shows, what it asks for, and pictures of it. `scripts/record-report` puts two of them
//! into the documentation.

use super::browser::{self, Browser};
use super::night::{self, TASK};
use crate::env::Env;
use crate::skip::skip;
use std::fs;
use std::path::Path;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Pictures that are looked at and not kept.
fn pictures() -> std::path::PathBuf {
    let folder = Path::new(ROOT).join("target/report-pictures");
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn the_page_loads_nothing_complains_of_nothing_and_opens_on_demand() {
    let Some(program) = browser::find() else { return skip("chromium is not installed") };
    let night = night::night();
    let path = pictures().join("report.html");
    fs::write(&path, &night.page).unwrap();
    let mut browser = Browser::start(&program);
    browser.size(1000, 800, 1.0);
    browser.prefer("light");
    browser.open(&path);
    assert!(browser.value("document.body.innerText").as_str().unwrap().contains(TASK));
    assert_eq!(browser.value("document.scripts.length"), 0);
    for (name, width, height, scheme) in
        [("light", 1000, 1180, "light"), ("dark", 1000, 1180, "dark"), ("phone", 390, 844, "light")]
    {
        browser.size(width, height, 1.0);
        browser.prefer(scheme);
        browser.picture(&pictures().join(format!("{name}.png")), false);
        let ink = browser.value("getComputedStyle(document.body).color");
        assert_eq!(ink == "rgb(29, 28, 26)", scheme == "light", "{name}: {ink}");
    }
    let is_open = "document.querySelector('.it').open";
    assert_eq!(browser.value(is_open), false);
    browser.click(".it > summary");
    assert_eq!(browser.value(is_open), true, "an iteration opens");
    browser.click(".it .log > summary");
    assert_eq!(browser.value("document.querySelector('.it .log').open"), true, "and then the end of its log");
    browser.value("document.querySelectorAll('details').forEach(d => d.open = true)");
    for (name, width) in [("all", 1000), ("phone-all", 390), ("narrow", 320)] {
        browser.size(width, 844, 1.0);
        browser.picture(&pictures().join(format!("{name}.png")), true);
        let overflow =
            browser.value("document.documentElement.scrollWidth - document.documentElement.clientWidth");
        assert_eq!(overflow, 0, "{name}: the page is wider than its window");
    }
    assert_eq!(browser.offences(), [""; 0]);
    fs::write(&path, &night.all).unwrap();
    browser.size(1000, 800, 1.0);
    browser.open(&path);
    browser.picture(&pictures().join("runs.png"), true);
    assert_eq!(browser.offences(), [""; 0]);
}

#[test]
fn no_long_word_makes_the_page_wider_than_its_window() {
    let Some(program) = browser::find() else { return skip("chromium is not installed") };
    let env = Env::new();
    let word = "x".repeat(600);
    env.write("first", "");
    night::git(&env, &["init", "-q", "-b", "main"]);
    night::git(&env, &["add", "."]);
    night::git(&env, &["commit", "-q", "-m", "begin"]);
    let name = "y".repeat(200);
    let commit = "git -c user.name=u -c user.email=u@example.com commit -q -m";
    let script =
        format!("echo {word} > {name}; git add {name}; {commit} {word}; echo {word}; promise COMPLETE");
    let run = env.run_with(&script, &["--verify", &format!(": {word}"), &word]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    let path = env.ralph(&["report"]).ok();
    let mut browser = Browser::start(&program);
    browser.open(Path::new(path.trim()));
    browser.value("document.querySelectorAll('details').forEach(d => d.open = true)");
    assert!(browser.value("document.body.innerText").as_str().unwrap().contains("Commits by iteration"));
    for width in [1000, 390, 320] {
        browser.size(width, 844, 1.0);
        assert_eq!(browser.value("document.documentElement.scrollWidth <= innerWidth"), true, "{width}");
    }
}

#[test]
fn on_paper_it_is_light_and_everything_that_cannot_be_opened_is_open() {
    let Some(program) = browser::find() else { return skip("chromium is not installed") };
    let night = night::night();
    let path = pictures().join("printed.html");
    fs::write(&path, &night.page).unwrap();
    let mut browser = Browser::start(&program);
    browser.size(794, 1123, 1.0);
    // The reader of a dark screen has white paper, too.
    browser.on_paper("dark");
    browser.open(&path);
    let style = |what: &str| format!("getComputedStyle(document.body).{what}");
    assert_eq!(browser.value(&style("color")), "rgb(29, 28, 26)");
    assert_eq!(browser.value(&style("backgroundColor")), "rgb(255, 255, 255)");
    let closed = "[...document.querySelectorAll('details:not([open]):not(.log):not(.screen-only)')]";
    let hidden =
        format!("{closed}.filter(d => d.lastElementChild.getBoundingClientRect().height == 0).length");
    assert_ne!(browser.value(&format!("{closed}.length")), 0);
    assert_eq!(browser.value(&hidden), 0, "what is closed on the screen is open on paper");
    let logs =
        "[...document.querySelectorAll('.log')].filter(d => d.getBoundingClientRect().height > 0).length";
    assert_eq!(browser.value(logs), 0, "the ends of the logs stay on the screen");
    let overflow =
        browser.value("document.documentElement.scrollWidth - document.documentElement.clientWidth");
    assert_eq!(overflow, 0, "the page is wider than the sheet");
    let sheets = browser.print(&pictures().join("report.pdf"));
    assert!((2..=8).contains(&sheets), "{sheets} sheets");
    assert_eq!(browser.offences(), [""; 0]);
    fs::write(&path, &night.all).unwrap();
    browser.open(&path);
    browser.print(&pictures().join("runs.pdf"));
}

#[test]
fn report_pictures_are_in_the_documentation() {
    let recorded = ["light", "dark"].map(|name| Path::new(ROOT).join(format!("docs/report-{name}.png")));
    if std::env::var_os("RALPH_RECORD").is_some() {
        let program = browser::find().expect("chromium is installed");
        let path = pictures().join("recorded.html");
        fs::write(&path, &night::night().page).unwrap();
        let mut browser = Browser::start(&program);
        for (scheme, recorded) in ["light", "dark"].iter().zip(&recorded) {
            browser.size(1000, 1180, 1.0);
            browser.prefer(scheme);
            browser.open(&path);
            browser.picture(recorded, false);
        }
    }
    let readme = fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    for path in recorded {
        let size = fs::metadata(&path).map_or(0, |meta| meta.len());
        assert!(
            (1..200 << 10).contains(&size),
            "{}: {size} bytes: run scripts/record-report",
            path.display()
        );
        let name = path.strip_prefix(ROOT).unwrap().to_str().unwrap();
        assert!(readme.contains(name), "README.md does not show {name}");
    }
}
