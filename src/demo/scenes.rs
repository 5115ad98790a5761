//! The scenes of the demo. Each one checks that what it shows has happened.

use super::client::{DemoClient, unexpected};
use super::sandbox::{CHECK, Sandbox};
use super::screen::DemoScreen;
use crate::core::time::Stamp;
use crate::store::process::names::GUIDANCE;
use anyhow::{Context, Result, ensure};
use std::path::Path;

/// The length of the story.
const MINUTES: i64 = 14 + 1 + 11 + NIGHT_MINUTES + 1 + 8 + 6;
const NIGHT_MINUTES: i64 = 8 * 60 + 34;

const TASK: &str = "write a recipe for tea";
const FORBIDDEN: &str = "the microwave";
/// The output of the check while it fails.
const CHECK_OUTPUT: &str = "the pot is cold";

/// Lines of `ralph run` that the demo leaves out to stay short.
const LEFT_OUT: [&str; 9] = [
    "Task:",
    "Check:",
    "Ralph: not in a git",
    "Ralph: removed",
    "── iteration 1 ok",
    "───",
    "Avg/iter",
    "Stuck",
    "Log",
];

pub fn play(sandbox: &Sandbox, screen: &mut DemoScreen, now: Stamp) -> Result<()> {
    screen.remark(
        "A whole loop in a temporary project. Claude Code and the agent are scripted: no key, no network. Lines after \
         │ are real output.",
    )?;
    let mut client = DemoClient::new(sandbox, now.plus_ms(-MINUTES * 60_000));
    let scenes = [start, constraint, guidance, night, idle, check_fails, check_passes, runner];
    scenes.iter().try_for_each(|scene| scene(screen, &mut client))
}

fn start(screen: &mut DemoScreen, client: &mut DemoClient) -> Result<()> {
    screen.scene("Give it a task, and a check that must pass before it may finish.")?;
    let text = format!("{TASK} --verify \"{}\" --max-idle 2", CHECK.2);
    screen.you(&format!("/ralph:start {text}"))?;
    let answer = client.command("ralph:start", &text)?;
    expect(answer.message.contains(TASK), "a loop starts", &answer.message)?;
    screen.ralph(answer.message.lines().next().unwrap_or_default())
}

fn constraint(screen: &mut DemoScreen, client: &mut DemoClient) -> Result<()> {
    screen.scene("The agent stops early. The Stop hook scans its work and keeps it going.")?;
    client.sandbox.write("tea.txt", "boil water\nadd tea\n")?;
    client.sandbox.write("Makefile", "tea:\n\t/Users/sam/bin/kettle --on\n")?;
    let says = "Wrote tea.txt and a Makefile. This seems a good place to stop!";
    let answer = client.turn(screen, 14, Some("Makefile"), says)?;
    let prompt = answer.continues()?;
    expect(prompt.contains("Makefile:2"), "the scan finds the path in the Makefile", prompt)?;
    screen.ralph(&format!("{}\n{}", answer.message, forbidden(prompt)?))
}

fn guidance(screen: &mut DemoScreen, client: &mut DemoClient) -> Result<()> {
    screen.scene("While it works, add guidance from another terminal.")?;
    client.advance(1);
    let output = type_command(screen, client, GUIDANCE, &["forbid", FORBIDDEN])?;
    expect(output.contains(FORBIDDEN), "the guidance is saved", &output)?;
    screen.ralph(&output)?;
    client.sandbox.write("Makefile", "tea:\n\tkettle --on\n")?;
    let says = "The kettle is now found on every machine, not only on Sam's.";
    let answer = client.turn(screen, 11, Some("Makefile"), says)?;
    let prompt = answer.continues()?;
    expect(prompt.contains(FORBIDDEN), "the next prompt contains the guidance", prompt)?;
    expect(!prompt.contains("Makefile"), "the fixed path is gone from the prompt", prompt)?;
    screen.ralph(&forbidden(prompt)?)?;
    screen.remark("The next prompt has your guidance. The path is fixed, so it is gone.")
}

fn night(screen: &mut DemoScreen, client: &mut DemoClient) -> Result<()> {
    screen.scene("You close the laptop for the night. That counts as wall time, not runtime.")?;
    client.advance(NIGHT_MINUTES);
    let answer = client.resume()?;
    expect(answer.context.contains(TASK), "the agent reads its task again", &answer.context)?;
    let times = "Runtime: 0.4h/9.0h | Wall: 9.0h";
    expect(answer.message.contains(times), "the night counts as wall time only", &answer.message)?;
    screen.ralph(&answer.message)
}

fn idle(screen: &mut DemoScreen, client: &mut DemoClient) -> Result<()> {
    screen.scene("The agent talks instead of working.")?;
    let says = "What is tea, if not patience? Let me think about that for a while.";
    let answer = client.turn(screen, 1, None, says)?;
    answer.continues()?;
    expect(answer.message.contains("tool"), "a warning after a turn without a tool", &answer.message)?;
    screen.ralph(&answer.message)
}

fn check_fails(screen: &mut DemoScreen, client: &mut DemoClient) -> Result<()> {
    screen.scene("The agent claims to be done. The check fails.")?;
    client.sandbox.write("tea.txt", "boil water\nadd tea\nwait four minutes\n")?;
    let says = "Perfect tea!\n\n<promise>COMPLETE</promise>";
    let answer = client.turn(screen, 8, Some("tea.txt"), says)?;
    let prompt = answer.continues()?;
    let output = prompt.lines().find(|line| line.contains(CHECK_OUTPUT));
    let output = output.with_context(|| unexpected("the agent reads the output of the check", prompt))?;
    screen.ralph(&format!("{}\n{output}", answer.message))
}

fn check_passes(screen: &mut DemoScreen, client: &mut DemoClient) -> Result<()> {
    screen.scene("The agent fixes it. The check passes, and the loop ends.")?;
    client.sandbox.write("tea.txt", "warm the pot\nboil water\nadd tea\nwait four minutes\n")?;
    let says = "The pot is warm, and so is the tea.\n\n<promise>COMPLETE</promise>";
    let answer = client.turn(screen, 6, Some("tea.txt"), says)?;
    let ended = answer.prompt.is_none() && answer.message.contains("(complete)");
    expect(ended, "the loop ends as complete", &answer.message)?;
    screen.ralph(&answer.message)
}

fn runner(screen: &mut DemoScreen, client: &mut DemoClient) -> Result<()> {
    screen.scene("The same for nights and CI: `ralph run` starts a fresh agent per iteration.")?;
    let agent = client.sandbox.agent();
    let args = ["run", "bake scones for two", "--verify", CHECK.2, "--delay", "0", "--agent-command", &agent];
    let output = type_command(screen, client, "ralph", &args)?;
    let starts = client.sandbox.agent_starts();
    ensure!(starts == 2, "expected: the agent starts twice; got: {starts}");
    let left_out = |line: &str| LEFT_OUT.iter().any(|part| line.starts_with(part));
    let lines = output.lines().filter(|line| !["", "Ralph run"].contains(line) && !left_out(line));
    screen.ralph(&lines.collect::<Vec<_>>().join("\n"))
}

/// Prints the end: where the project is, and how to start for real.
pub fn end(screen: &mut DemoScreen, kept: Option<&Path>, is_installed: bool) -> Result<()> {
    match kept {
        None => screen.heading("", "Done. The temporary project was removed."),
        Some(folder) => {
            screen.heading("", &format!("Done. The temporary project is in {}", folder.display()))?;
            screen.remark("Look around in its folder tea: RALPH_DATA_DIR=\"$PWD/../data\" ralph history")
        }
    }?;
    if is_installed {
        return screen.remark("Next: `ralph install`, then /ralph:start in Claude Code.");
    }
    screen
        .remark("Next: `cargo install --locked --path .`, `ralph install`, then /ralph:start in Claude Code.")
}

/// Returns the list of forbidden things in a prompt.
fn forbidden(prompt: &str) -> Result<String> {
    let mut lines = prompt.lines().skip_while(|line| !line.starts_with("FORBIDDEN"));
    let title = lines.next().with_context(|| unexpected("a prompt with FORBIDDEN", prompt))?;
    let entries = lines.take_while(|line| line.starts_with("- "));
    Ok(std::iter::once(title).chain(entries).collect::<Vec<_>>().join("\n"))
}

fn expect(happened: bool, expected: &str, output: &str) -> Result<()> {
    ensure!(happened, "{}", unexpected(expected, output));
    Ok(())
}

/// Shows a command as one would type it, and returns its output.
fn type_command(screen: &DemoScreen, client: &DemoClient, program: &str, args: &[&str]) -> Result<String> {
    let word = |word: &&str| if word.contains(' ') { format!(" \"{word}\"") } else { format!(" {word}") };
    screen.you(&format!("{program}{}", args.iter().map(word).collect::<String>()))?;
    client.sandbox.run(client.sandbox.command(program, client.now).args(args), "")
}
