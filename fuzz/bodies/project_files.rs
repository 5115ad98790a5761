//! Files of a project that anyone may have written: a question, the summary, the lock of a run.

use super::place::Place;
use ralph::store::runner::{run_lock, summary};
use ralph::store::state::question;

pub fn check(bytes: &[u8]) {
    let place = Place::new();
    for name in ["decide.txt", "blocked.txt", "run.lock", "logs/summary.csv"] {
        place.write(&format!("project/ralph/{name}"), bytes);
    }
    a_question(&place);
    the_summary(&place);
    let _ = run_lock::holder(&place.world, &place.project);
}

fn a_question(place: &Place) {
    let read = || question::all(&place.world, &place.project).expect("they can be read");
    let [Some(found), Some(blocked)] = read() else { panic!("they are there") };
    let is_unsafe = |c: char| c.is_control() && c != '\n' && c != '\t';
    let shown = [found.question.as_str(), &found.answer, &found.whole(), &found.unanswered()];
    assert!(!shown.iter().any(|text| text.contains(is_unsafe)), "not safe to show: {found:?}");
    assert!(found.foreign && blocked.foreign, "no loop asked it");
    assert_eq!((&blocked.question, &blocked.answer), (&found.question, &found.answer));
    let answered = question::answer(&place.project, &found, "yes").expect("it can be written");
    let [Some(again), _] = read() else { panic!("it is there") };
    assert_eq!(again, answered, "not read as it was written");
}

fn the_summary(place: &Place) {
    let before = summary::read(&place.project);
    let _ = summary::totals(&place.project);
    let row =
        summary::SummaryRow { iteration: 7, mode: "a, \"b\"\nc".into(), ..summary::SummaryRow::default() };
    summary::add(&place.project, &row).expect("it can be written");
    let after = summary::read(&place.project);
    assert!(after.len() <= before.len() + 1, "one row was added");
}
