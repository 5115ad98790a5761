//! The status for scripts.

use super::{LoopView, StatusView};
use crate::core::decide::outlook;
use crate::core::record::Engine;
use crate::core::time::Stamp;
use crate::view::guidance;
use serde_json::{Value, json};

impl StatusView {
    pub fn json(&self) -> Value {
        json!({
            "project": self.project.to_string_lossy(),
            "loops": self.loops.iter().map(|shown| shown.json(self.now)).collect::<Vec<_>>(),
            "guidance": guidance::json(&self.guidance, self.now),
            "constraints": self.constraints,
            "notes": self.notes,
        })
    }
}

impl LoopView {
    fn json(&self, now: Stamp) -> Value {
        let run = &self.run;
        json!({
            "session_id": self.session_id,
            "run_id": run.run_id,
            "engine": run.engine,
            "state": run.state,
            "activity": self.activity(now).name(),
            "task": run.task,
            "iteration": run.iteration,
            "max_iterations": self.settings.max_iterations,
            "runtime_seconds": run.accumulated_runtime_seconds,
            "max_runtime_seconds": Stamp(self.settings.max_runtime_ms).seconds(),
            "wall_seconds": Stamp(run.wall_ms(now)).seconds(),
            "started_at": run.started_at,
            "ended_at": run.ended_at,
            "last_seen_at": run.last_seen(),
            "outcome": run.outcome,
            "reason": run.reason,
            "tasks": self.tasks.as_ref().map(|tasks| json!({
                "file": run.tasks.file, "total": tasks.total, "passing": tasks.passing, "unusable": tasks.unusable,
            })),
            "checks": self.settings.checks.iter().map(|command| {
                let last = run.checks.iter().find(|result| result.command == *command);
                json!({
                    "command": command,
                    "passed": last.map(|last| last.passed),
                    "exit_code": last.and_then(|last| last.exit_code),
                    "at": last.map(|last| last.at),
                })
            }).collect::<Vec<_>>(),
            "allowed_tools": self.settings.allowed_tools,
            "circuit": {
                "state": run.circuit.state, "reason": run.circuit.reason, "counters": run.circuit.counters,
            },
            "stuck_count": run.stuck_count,
            "next_ends": outlook::next_ends(run, &self.settings),
            "max_stuck": (run.engine == Engine::Runner).then_some(self.settings.max_stuck),
            "status_block": run.status_block,
            "output_characters": run.output_characters,
            "calls": self.calls,
            "usage": run.usage,
            "quota": run.quota.at.map(|at| json!({
                "windows": run.quota.windows.iter().map(|window| json!({
                    "window": window.name,
                    "percent": (!window.is_over(now)).then_some(window.percent),
                    "resets_at": window.resets_at,
                })).collect::<Vec<_>>(),
                "at": at, "source": run.quota.source,
            })),
            "orphaned": run.session.orphaned_at.is_some() || self.activity(now).name() == "orphaned",
            "last_error": run.session.last_error,
            "waiting": self.activity(now).waiting(),
            "client": self.client_word(),
            "attach": self.attach,
        })
    }
}
