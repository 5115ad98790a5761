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

/// Ends, with nothing but a shell, every process that bears the mark `$1`: asked first, where there is a grace of `$2`
/// tenths of a second, then killed. The dead show no environment, so nobody is waited for who only waits to be buried.
pub const SWEEP: &str = r#"mark=$1 left=$2
marked() {
  for pid; do
    if tr '\0' '\n' 2>/dev/null < "/proc/$pid/environ" | grep -qxF -- "$mark"; then echo "$pid"; fi
  done
}
everybody() { for dir in /proc/[0-9]*; do echo "${dir#/proc/}"; done; }
found=$(marked $(everybody))
[ "$found" ] || exit 0
[ "$left" -gt 0 ] && kill -TERM $found 2>/dev/null
while [ "$left" -gt 0 ] && [ "$(marked $found)" ]; do
  sleep 0.1 2>/dev/null || { sleep 1; left=$((left - 9)); }
  left=$((left - 1))
done
for look in 1 2 3 4 5; do
  found=$(marked $(everybody))
  [ "$found" ] || break
  kill -KILL $found 2>/dev/null
done
exit 0"#;

/// Ends every process here that bears the mark, also one that left its group. Given a moment before the first of
/// them was started, it looks only at who was born since.
#[cfg(target_os = "linux")]
pub fn end_marked(mark: &str, since: Option<Moment>) {
    let _ = (0..LOOKS).take_while(|_| end_seen(mark, since.map_or(0, Moment::lowest))).count();
}

/// A moment in the life of the system, by the number of processes it had started.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    #[cfg(target_os = "linux")]
    started: Option<i64>,
}

#[cfg(target_os = "linux")]
impl Moment {
    pub fn now() -> Moment {
        Moment { started: started() }
    }

    /// The lowest number that what we have started since can have. Numbers are given in turn: as long as there were
    /// not enough starts to come round, all of them are above our own.
    fn lowest(self) -> i32 {
        let own = i64::from(std::process::id());
        let most = std::fs::read_to_string("/proc/sys/kernel/pid_max")
            .ok()
            .and_then(|text| text.trim().parse().ok());
        let since = self.started.zip(started()).map(|(then, now)| now - then);
        match (since, most) {
            (Some(since), Some(most)) if own + since < most => i32::try_from(own).unwrap_or(0),
            _ => 0,
        }
    }
}

/// How many processes and threads the system has started, in all namespaces.
#[cfg(target_os = "linux")]
fn started() -> Option<i64> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("processes "))?.trim().parse().ok()
}

/// One look; returns whether there was anything.
#[cfg(target_os = "linux")]
fn end_seen(mark: &str, lowest: i32) -> bool {
    use rustix::process::{Pid, Signal, kill_process};
    let mut found = false;
    let mark = entry(mark);
    let wanted = memchr::memmem::Finder::new(mark.as_bytes());
    let mut environment = vec![0; 64 << 10];
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    for pid in pids.filter(|pid| *pid != own && *pid >= lowest) {
        // Most look at it in vain, after every iteration: so with few calls, and no memory of their own.
        let Some(environment) = environment_of(pid, &mut environment) else { continue };
        let whole = |at: usize| {
            let end = at + mark.len();
            (at == 0 || environment[at - 1] == 0) && environment.get(end).is_none_or(|byte| *byte == 0)
        };
        if wanted.find_iter(environment).any(whole)
            && let Some(pid) = Pid::from_raw(pid)
        {
            found |= kill_process(pid, Signal::KILL).is_ok();
        }
    }
    found
}

/// The environment of a process, in a buffer that grows with the largest.
#[cfg(target_os = "linux")]
fn environment_of(pid: i32, buffer: &mut Vec<u8>) -> Option<&[u8]> {
    let mut file = std::fs::File::open(format!("/proc/{pid}/environ")).ok()?;
    let mut len = 0;
    loop {
        let read = std::io::Read::read(&mut file, &mut buffer[len..]).ok()?;
        len += read;
        // It comes whole, as far as there is room.
        if len < buffer.len() || read == 0 {
            return Some(&buffer[..len]);
        }
        buffer.resize(buffer.len() * 2, 0);
    }
}

/// Elsewhere the environment of others is not to be seen; the group is all there is.
#[cfg(not(target_os = "linux"))]
pub fn end_marked(_: &str, _: Option<Moment>) {}

#[cfg(not(target_os = "linux"))]
impl Moment {
    pub fn now() -> Moment {
        Moment {}
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn sleeper(variables: &[(&str, &str)]) -> Child {
        let mut command = Command::new("sleep");
        command.arg("600").env_clear().envs(variables.iter().copied()).spawn().unwrap()
    }

    #[test]
    fn only_who_bears_exactly_this_mark_is_ended() {
        let mark = format!("mark-{}", std::process::id());
        let longer = format!("{mark}0");
        let large = "x".repeat(100 << 10);
        let mut ours = [
            sleeper(&[(VARIABLE, &mark)]),
            sleeper(&[("A", "b"), (VARIABLE, &mark), ("Z", "y")]),
            sleeper(&[("A", &large), ("B", &large), (VARIABLE, &mark)]),
        ];
        let mut others = [
            sleeper(&[]),
            sleeper(&[(VARIABLE, &longer)]),
            sleeper(&[("NO_RALPH_RUN_ID", &mark), ("X", &entry(&mark))]),
        ];
        let before = Moment::now();
        let late = sleeper(&[(VARIABLE, &mark)]);
        assert!(
            before.lowest() > 1 && u32::try_from(before.lowest()).unwrap() < late.id(),
            "numbers are not used up"
        );
        assert_eq!(Moment { started: Some(i64::MIN / 2) }.lowest(), 0, "they came round");
        assert_eq!(Moment { started: None }.lowest(), 0);
        end_marked(&mark, Some(before));
        for child in ours.iter_mut().chain([&mut { late }]) {
            child.wait().unwrap();
        }
        for child in &mut others {
            assert!(child.try_wait().unwrap().is_none(), "somebody else's");
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
