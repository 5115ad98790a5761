//! Crash points: every system call with which a command changes files is killed and, separately, made to fail.
//!
//! A run without a fault lists the calls. Each point then gets a world of its own, in the same folder because records
//! name their project by its path. Afterwards the state is the old or the new one, no run is lost, the next call works,
//! and nothing is left over. `cargo test` takes a sample; `scripts/crash-points` takes all of them and prints figures.

mod points;
mod scenarios;
mod world;

use crate::env::{Env, Run};
use crate::skip::skip;
use points::{Fault, Point};
use scenarios::Scenario;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use world::{Outside, View};

/// How many kills, failing writes and failing reads of each command `cargo test` tries.
const SAMPLE: [usize; 3] = [6, 5, 2];

macro_rules! survives {
    ($($test:ident: $scenario:ident,)*) => {$(
        #[test]
        fn $test() {
            check(stringify!($scenario), &scenarios::$scenario());
        }
    )*};
}

survives! {
    a_start_survives: start,
    a_start_that_replaces_a_loop_survives: replace,
    a_start_that_resumes_a_loop_survives: resume,
    a_start_that_adopts_a_loop_survives: adopt,
    a_stop_survives: stop,
    encouraging_survives: encourage,
    forbidding_survives: forbid,
    removing_guidance_survives: remove,
    allowing_a_finding_survives: allow,
    a_turn_that_continues_survives: turn,
    a_turn_that_completes_survives: completion,
    a_session_that_opens_survives: session_start,
    a_run_survives: run,
    a_run_that_continues_survives: continued_run,
    an_archive_survives: archive,
    an_install_survives: install,
    an_install_that_registers_survives: registering_install,
}

fn check(name: &str, scenario: &Scenario) {
    let Some(strace) = points::strace() else {
        return skip("strace is missing (Debian: apt-get install strace), or may not trace here");
    };
    let env = (scenario.prepare)();
    let template = Template::of(&env);
    let before = View::of(&env);
    let found = points::list(&env, &strace, scenario);
    let after = View::of(&env);
    assert!(!found.is_empty(), "{name}: a command that saves makes calls");
    let (mut kills, mut errors, mut lost) = (0, 0, Vec::new());
    for (point, fault) in &cases(name, &found) {
        template.restore(&env);
        let run = points::inject(&env, &strace, scenario, point, *fault);
        if fault.is_kill() {
            kills += 1
        } else {
            errors += 1
        }
        let case = Case { env: &env, scenario, before: &before, after: &after };
        if let Err(why) = case.judge(&run, *fault) {
            lost.push(format!("{point} {fault}: {why}"));
        }
    }
    (scenario.finish)();
    eprintln!(
        "crash points: {name}: {} points, {kills} kills, {errors} injected errors, {} failures",
        found.len(),
        lost.len()
    );
    assert!(lost.is_empty(), "{name}\n  {}", lost.join("\n  "));
}

/// Returns what to try: everything, or a sample of each kind that is always the same.
fn cases(name: &str, found: &[Point]) -> Vec<(Point, Fault)> {
    let all = std::env::var_os("RALPH_CRASH_POINTS").is_some_and(|value| value == "all");
    let kinds = [Fault::is_kill, Fault::is_write_error, Fault::is_read_error];
    let mut chosen = Vec::new();
    for (is_kind, most) in kinds.into_iter().zip(SAMPLE) {
        let of_point = |point: &Point| {
            let point = point.clone();
            point
                .faults()
                .into_iter()
                .filter(move |fault| is_kind(*fault))
                .map(move |fault| (point.clone(), fault))
        };
        let cases: Vec<_> = found.iter().flat_map(of_point).collect();
        let step = if all { 1 } else { cases.len().div_ceil(most).max(1) };
        // Another beginning for each command, so that the sample is not of the same calls everywhere.
        chosen.extend(cases.into_iter().skip(name.len() % step).step_by(step));
    }
    chosen
}

struct Case<'a> {
    env: &'a Env,
    scenario: &'a Scenario,
    before: &'a View,
    after: &'a View,
}

impl Case<'_> {
    fn judge(&self, run: &Run, fault: Fault) -> Result<(), String> {
        if !fault.is_kill() {
            self.judge_answer(run)?;
        }
        let now = View::try_of(self.env)?;
        let is_old_or_new = now.loops == self.before.loops || now.loops == self.after.loops;
        if !(is_old_or_new || (self.scenario.between)(&now)) {
            return Err(format!("the loops are neither the old nor the new ones: {:?}", now.loops));
        }
        if now.guidance != self.before.guidance && now.guidance != self.after.guidance {
            return Err(format!("the guidance is neither the old nor the new one: {:?}", now.guidance));
        }
        let status = self.env.ralph(&["status", "--json"]);
        let shown: serde_json::Value = serde_json::from_str(&status.stdout)
            .map_err(|error| format!("status cannot be read: {error}: {status:?}"))?;
        let shown = shown["loops"].as_array().into_iter().flatten();
        let shown: BTreeSet<String> =
            shown.filter_map(|run| run["run_id"].as_str().map(str::to_owned)).collect();
        self.find_lost(&shown)?;
        world::age_litter(self.env);
        (self.scenario.again)(self.env, &self.before.outside)?;
        // The next call may have taken the place of a loop that the history did not have yet.
        self.find_lost(&View::try_of(self.env)?.present)?;
        let litter = world::litter(self.env);
        if litter.is_empty() { Ok(()) } else { Err(format!("left over: {litter:?}")) }
    }

    /// Each run that was alive is still a loop of this user, or in the history.
    fn find_lost(&self, present: &BTreeSet<String>) -> Result<(), String> {
        let past = View::past(self.env);
        let lost = self.before.alive.iter().find(|run| !present.contains(*run) && !past.contains(*run));
        lost.map_or(Ok(()), |run| Err(format!("run {run} is lost")))
    }

    /// A failing call is told, and is never a crash.
    fn judge_answer(&self, run: &Run) -> Result<(), String> {
        let says_why = !run.stderr.is_empty() || !run.stdout.is_empty();
        match run.code {
            Some(0) => Ok(()),
            Some(1..=78) if !self.scenario.is_hook && says_why => Ok(()),
            _ => Err(format!("it crashed or kept silent: {run:?}")),
        }
    }
}

/// A copy of a world, to begin each point with.
struct Template {
    folder: tempfile::TempDir,
}

impl Template {
    fn of(env: &Env) -> Template {
        let folder = tempfile::tempdir().unwrap();
        copy(&env.base, folder.path());
        Template { folder }
    }

    fn restore(&self, env: &Env) {
        for entry in fs::read_dir(&env.base).unwrap().flatten() {
            let path = entry.path();
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.unwrap();
        }
        copy(self.folder.path(), &env.base);
    }
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status().expect("cp runs");
    assert!(copied.success());
}

/// What a command wrote outside the state.
type Again = fn(&Env, &Outside) -> Result<(), String>;
