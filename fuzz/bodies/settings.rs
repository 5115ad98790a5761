//! Settings from a file: whatever it says, what the loop goes by is sound.

use ralph::core::settings::{KEYS, Layer, Resolved, SettingSource, resolve};
use ralph::core::text::clean;
use ralph::store::config;
use serde_json::Value;

pub fn check(bytes: &[u8]) {
    let Ok(Value::Object(fields)) = serde_json::from_slice(bytes) else { return };
    let values = config::by_dotted_key(fields);
    let file = Layer { source: SettingSource::Project, place: "file".into(), values };
    let resolved = resolve(std::slice::from_ref(&file));
    let names: Vec<_> = resolved.rows.iter().map(|row| row.key.name).collect();
    assert_eq!(names, KEYS.iter().map(|key| key.name).collect::<Vec<_>>());
    for row in &resolved.rows {
        if !row.value.is_null() {
            assert_eq!(row.key.read(&row.value).as_ref(), Ok(&row.value), "{}", row.key.name);
        }
        if file.values.get(row.key.name).is_some_and(|given| row.key.read(given).is_err() && !given.is_null())
        {
            assert!(
                resolved.warnings.iter().any(|warning| warning.contains(row.key.name)),
                "{}",
                row.key.name
            );
        }
    }
    is_sound(&resolved);
    // The same from a stronger place: a bad value there falls to the file's.
    let flags = Layer { source: SettingSource::Flag, place: "flags".into(), values: file.values.clone() };
    is_sound(&resolve(&[flags, file]));
}

fn is_sound(resolved: &Resolved) {
    let settings = resolved.settings();
    let number = |name: &str| resolved.row(name).and_then(|row| row.value.as_f64()).unwrap_or(0.0);
    for (name, ms) in [
        ("loop_limits.max_hours", settings.max_runtime_ms),
        ("guidance.max_age_hours", settings.guidance_max_age_ms),
        ("run.session_expiration_hours", settings.session_expiration_ms),
    ] {
        assert!(ms >= 0, "{name}");
        assert_eq!(ms == 0, number(name) == 0.0, "{name} {}: the limit got lost", number(name));
    }
    assert!(settings.pause_threshold_ms > 0 && settings.min_runtime_ms >= 0);
    let over = |min: i64, max: i64| max > 0 && min > max;
    assert!(!over(settings.min_runtime_ms, settings.max_runtime_ms), "it could never finish");
    assert!(
        settings.max_iterations == 0 || settings.min_iterations <= settings.max_iterations,
        "it could never finish"
    );
    assert!(settings.max_cost_usd.is_none_or(|usd| usd.is_finite() && usd > 0.0));
    assert!(!settings.promise.is_empty(), "an empty promise");
    assert_eq!(settings.promise, clean::line(&settings.promise), "a promise nobody can type");
}
