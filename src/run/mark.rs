//! The mark by which a process is known to be of our making: a variable that everything it starts inherits.

/// Its value names the run and the iteration.
pub const VARIABLE: &str = "RALPH_RUN_ID";

/// As it stands in a process's environment.
pub fn entry(mark: &str) -> String {
    format!("{VARIABLE}={mark}")
}

/// Who starts another while we look may need a second look, and who does it for ever is not waited for.
#[cfg(target_os = "linux")]
const LOOKS: usize = 5;

/// Ends, with nothing but a shell, every process that bears the mark.
pub const SWEEP: &str = r#"for look in 1 2 3 4 5; do
  found=
  for dir in /proc/[0-9]*; do
    if [ "${dir#/proc/}" != "$$" ] && tr '\0' '\n' 2>/dev/null < "$dir/environ" | grep -qxF -- "$1"; then
      kill -KILL "${dir#/proc/}" 2>/dev/null && found=1
    fi
  done
  [ "$found" ] || break
done
exit 0"#;

/// Ends every process here that bears the mark, also one that left its group.
#[cfg(target_os = "linux")]
pub fn end_marked(mark: &str) {
    let _ = (0..LOOKS).take_while(|_| end_seen(mark)).count();
}

/// One look; returns whether there was anything.
#[cfg(target_os = "linux")]
fn end_seen(mark: &str) -> bool {
    use rustix::process::{Pid, Signal, kill_process};
    let mut found = false;
    let wanted = entry(mark);
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    for pid in pids.filter(|pid| *pid != own) {
        let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else { continue };
        if environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
            && let Some(pid) = Pid::from_raw(pid)
        {
            found |= kill_process(pid, Signal::KILL).is_ok();
        }
    }
    found
}

/// Elsewhere the environment of others is not to be seen; the group is all there is.
#[cfg(not(target_os = "linux"))]
pub fn end_marked(_: &str) {}
