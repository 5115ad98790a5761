//! The state file: written unchanged it says the same, and nothing in it stops a turn from being judged.

use ralph::core::circuit::Circuit;
use ralph::core::decide::turn::{TranscriptGain, Turn};
use ralph::core::decide::{Decision, decide};
use ralph::core::guidance::merge::GuidanceLists;
use ralph::core::message;
use ralph::core::prompt;
use ralph::core::record::{ArmedLoop, LoopState, StoredLoop};
use ralph::core::settings::Settings;
use ralph::core::time::Stamp;
use ralph::store::state::{Document, usable_session_id};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// 2026-11-16, 08:00 UTC.
const NOW: Stamp = Stamp(1_794_816_000_000);

type Fields<'a> = BTreeMap<String, &'a RawValue>;

pub fn check(bytes: &[u8]) {
    let Ok(document) = Document::parse(bytes) else { return };
    let written = document.write();
    let again = Document::parse(&written).expect("what we write can be read");
    assert_eq!(String::from_utf8(again.write()), String::from_utf8(written.clone()), "written twice");
    assert_eq!(again.newer_than_us(), document.newer_than_us());
    survives(bytes, &written);
    if document.newer_than_us() {
        return;
    }
    for (session, run) in document.loops() {
        keeps_its_loop(&document, &session, &run);
        judge(run.clone(), &Settings::default());
        judge(
            run,
            &Settings {
                max_iterations: 0,
                max_runtime_ms: 0,
                circuit: Default::default(),
                ..Settings::default()
            },
        );
    }
    keeps_the_rest(document);
}

/// Field by field and to the letter, whether we know it or not. A loop that is damaged inside is stepped over, and the
/// file is then no JSON as a whole.
fn survives(before: &[u8], after: &[u8]) {
    let Ok(before) = serde_json::from_slice::<Fields>(before) else { return };
    let mut after: Fields = serde_json::from_slice(after).expect("an object");
    let loops = |fields: &Fields| -> BTreeMap<String, String> {
        let raw = fields.get("loops").map_or("null", |raw| raw.get());
        let loops: Option<Fields> = serde_json::from_str(raw).expect("loops");
        loops.unwrap_or_default().into_iter().map(|(id, raw)| (id, raw.get().to_owned())).collect()
    };
    assert_eq!(loops(&before), loops(&after), "loops");
    for (name, raw) in before.iter().filter(|(name, _)| !matches!(name.as_str(), "version" | "loops")) {
        assert_eq!(after.remove(name).map(RawValue::get), Some(raw.get()), "{name}");
    }
    let added: Vec<_> = after.keys().filter(|name| !matches!(name.as_str(), "version" | "loops")).collect();
    assert!(added.is_empty(), "{added:?} came from nowhere");
}

/// A loop that is read and written by this version comes back as it was, with fields of other versions.
fn keeps_its_loop(document: &Document, session: &str, run: &StoredLoop) {
    let mut document = document.clone();
    document.set_loop(session, run).expect("a loop can be written");
    let again = Document::parse(&document.write()).expect("what we write can be read");
    let Some(again) = again.loop_of(session) else {
        assert!(!usable_session_id(session), "the loop of {session:?} is gone");
        return;
    };
    is_alike(run, &again);
    let times = |run: &StoredLoop| (run.started_at, run.timing.armed_at, run.ended_at);
    assert_eq!(times(run), times(&again));
}

fn keeps_the_rest(mut document: Document) {
    let (guidance, findings) = (document.stated_guidance(), document.findings());
    document.set_guidance(&guidance).expect("guidance can be written");
    document.set_findings(&findings, NOW).expect("findings can be written");
    let again = Document::parse(&document.write()).expect("what we write can be read");
    is_alike(&guidance, &again.stated_guidance());
    is_alike(&guidance, &serde_json::from_value(json(&guidance)).expect("guidance"));
    assert_eq!(again.findings(), findings);
    assert_eq!(again.scanned_at(), Some(NOW));
}

/// A turn ends: whatever the record says, there is an answer, and no limit is overrun.
fn judge(run: StoredLoop, settings: &Settings) {
    let running = run.state == LoopState::Running;
    let (iteration, runtime) = (run.iteration, run.runtime_ms());
    let turn = Turn { gained: Some(TranscriptGain::default()), message: Some("x".into()), ..Turn::default() };
    let (run, decision) =
        decide(ArmedLoop::attach(run, Circuit::default(), Map::new(), None), &turn, settings, NOW);
    let _ = message::position(&run, settings, NOW);
    if let Decision::Continue(note) = &decision {
        let _ = message::continuing(&run, note, settings, NOW);
        let _ = prompt::continuation(&run, note, &GuidanceLists::default(), settings, NOW);
        assert!(running && (run.iteration > iteration || iteration == u64::MAX));
        assert!(settings.max_iterations == 0 || run.iteration < settings.max_iterations);
        assert!(settings.max_runtime_ms == 0 || run.runtime_ms() < settings.max_runtime_ms);
    }
    assert!(run.runtime_ms() >= runtime, "runtime shrank");
}

fn is_alike<T: serde::Serialize>(before: &T, after: &T) {
    let (before, after) = (json(before), json(after));
    assert!(alike(&before, &after), "it changed on its way:\n{before}\n{after}");
}

fn json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("a record is JSON")
}

/// Equal, but for the last digit of a fraction.
fn alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| alike(a, b)))
        }
        (Value::Number(x), Value::Number(y)) if x.is_f64() && y.is_f64() => {
            let (x, y) = (x.as_f64().unwrap_or(0.0), y.as_f64().unwrap_or(0.0));
            (x - y).abs() <= x.abs() * 1e-12
        }
        _ => a == b,
    }
}
