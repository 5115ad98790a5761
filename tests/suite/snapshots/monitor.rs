//! The monitor at the sizes people have, through a terminal emulator.

use super::Page;
use crate::env::{Env, Terminal};
use crate::monitor::worlds;

const SIZES: [(u16, u16); 4] = [(200, 60), (120, 40), (80, 24), (40, 10)];

fn show(page: &mut Page, env: &Env, title: &str, terminal: &Terminal) {
    page.section(env, title, &terminal.text());
}

#[test]
fn monitor() {
    let mut page = Page::new();
    let env = worlds::busy();
    for (columns, rows) in SIZES {
        let terminal = env.monitor((columns, rows), &[]);
        // The rows of the list are read one after the other.
        terminal.wait_until("everything", |text| text.contains(" complete") && text.contains("working"));
        show(&mut page, &env, &format!("{columns}×{rows}"), &terminal);
        if columns < 72 {
            terminal.types("\r");
            terminal.sees("Iteration ");
            show(&mut page, &env, &format!("{columns}×{rows}: the selected run"), &terminal);
        }
        if columns == 80 {
            terminal.types("jj");
            terminal.sees("press a to answer");
            show(&mut page, &env, "80×24: a question", &terminal);
            terminal.types("j");
            terminal.sees("x failed 1");
            show(&mut page, &env, "80×24: a past run", &terminal);
            terminal.types("kkkl");
            // The last line is drawn last.
            terminal.sees("g oldest");
            show(&mut page, &env, "80×24: the log", &terminal);
            terminal.types("q?");
            terminal.wait_until("the help", |text| {
                text.contains("this help") && text.contains("Esc back  j/k scroll")
            });
            terminal.loses("Enter open");
            show(&mut page, &env, "80×24: help", &terminal);
            terminal.types("qs");
            terminal.sees("y / n");
            show(&mut page, &env, "80×24: a question before a stop", &terminal);
        }
    }
    page.check("monitor");
}

#[test]
fn an_empty_monitor() {
    let mut page = Page::new();
    let env = Env::new();
    for (columns, rows) in SIZES.into_iter().chain([(39, 9), (12, 3), (1, 1)]) {
        let terminal = env.monitor((columns, rows), &[]);
        terminal.wait_until("something", |text| !text.trim().is_empty());
        show(&mut page, &env, &format!("{columns}×{rows}"), &terminal);
    }
    page.check("monitor-empty");
}
