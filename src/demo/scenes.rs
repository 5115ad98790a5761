//! The scenes of the demo. Each one checks that what it shows has happened.

use super::client::{Client, Turn, unexpected};
use super::sandbox::Sandbox;
use super::screen::Screen;
use crate::core::time::Stamp;
use crate::multicall::GUIDANCE;
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
    "Ralph: no git",
    "Ralph: dropped",
    "── iteration 1 ok",
    "───",
    "Avg/iter",
    "Stuck",
    "Log",
];

pub fn play(sandbox: &Sandbox, screen: &mut Screen, now: Stamp) -> Result<()> {
    screen.remark(
        "A whole loop in a temporary project. Claude Code and the agent are scripted: no key, no network. Lines after \
         │ are real output.",
    )?;
    let mut client = Client::new(sandbox, now.plus_ms(-MINUTES * 60_000));
    start(sandbox, screen, &mut client)?;
    constraint(sandbox, screen, &mut client)?;
    guidance(sandbox, screen, &mut client)?;
    night(screen, &mut client)?;
    idle(screen, &mut client)?;
    check_fails(sandbox, screen, &mut client)?;
    check_passes(sandbox, screen, &mut client)?;
    runner(sandbox, screen, client.now())
}

fn start(sandbox: &Sandbox, screen: &mut Screen, client: &mut Client) -> Result<()> {
    screen.scene("Give it a task, and a check that must pass before it may finish.")?;
    let text = format!("{TASK} --verify \"{}\" --max-idle 2", sandbox.check());
    screen.you(&format!("/ralph:start {text}"))?;
    let answer = client.command("ralph:start", &text)?;
    expect(answer.message.contains(TASK), "a loop starts", &answer.message)?;
    screen.ralph(answer.message.lines().next().unwrap_or_default())
}

fn constraint(sandbox: &Sandbox, screen: &mut Screen, client: &mut Client) -> Result<()> {
    screen.scene("The agent stops early. The Stop hook scans its work and keeps it going.")?;
    sandbox.write("tea.txt", "boil water\nadd tea\n")?;
    sandbox.write("Makefile", "tea:\n\t/Users/sam/bin/kettle --on\n")?;
    let says = "Wrote tea.txt and a Makefile. This seems a good place to stop!";
    screen.agent(says)?;
    let answer = client.turn(&Turn { minutes: 14, file: Some("Makefile"), says })?;
    let prompt = answer.continues()?;
    expect(prompt.contains("Makefile:2"), "the scan finds the path in the Makefile", prompt)?;
    screen.ralph(&format!("{}\n{}", answer.message, forbidden(prompt)?))
}

fn guidance(sandbox: &Sandbox, screen: &mut Screen, client: &mut Client) -> Result<()> {
    screen.scene("While it works, add guidance from another terminal.")?;
    let args = ["forbid", FORBIDDEN];
    screen.you(&command_line(GUIDANCE, &args))?;
    client.advance(1);
    let mut command = sandbox.command(GUIDANCE);
    command.args(args).env("RALPH_NOW", client.now().rfc3339());
    let output = sandbox.run(command, "")?;
    expect(output.contains(FORBIDDEN), "the guidance is saved", &output)?;
    screen.ralph(&output)?;
    sandbox.write("Makefile", "tea:\n\tkettle --on\n")?;
    let says = "The kettle is now found on every machine, not only on Sam's.";
    screen.agent(says)?;
    let answer = client.turn(&Turn { minutes: 11, file: Some("Makefile"), says })?;
    let prompt = answer.continues()?;
    expect(prompt.contains(FORBIDDEN), "the next prompt contains the guidance", prompt)?;
    expect(!prompt.contains("Makefile"), "the fixed path is gone from the prompt", prompt)?;
    screen.ralph(&forbidden(prompt)?)?;
    screen.remark("The next prompt has your guidance. The path is fixed, so it is gone.")
}

fn night(screen: &mut Screen, client: &mut Client) -> Result<()> {
    screen.scene("You close the laptop for the night. That counts as wall time, not runtime.")?;
    client.advance(NIGHT_MINUTES);
    let answer = client.resume()?;
    expect(answer.context.contains(TASK), "the agent reads its task again", &answer.context)?;
    let times = "Runtime: 0.4h/9.0h | Wall: 9.0h";
    expect(answer.message.contains(times), "the night counts as wall time only", &answer.message)?;
    screen.ralph(&answer.message)
}

fn idle(screen: &mut Screen, client: &mut Client) -> Result<()> {
    screen.scene("The agent talks instead of working.")?;
    let says = "What is tea, if not patience? Let me think about that for a while.";
    screen.agent(says)?;
    let answer = client.turn(&Turn { minutes: 1, file: None, says })?;
    answer.continues()?;
    expect(answer.message.contains("tool"), "a warning after a turn without a tool", &answer.message)?;
    screen.ralph(&answer.message)
}

fn check_fails(sandbox: &Sandbox, screen: &mut Screen, client: &mut Client) -> Result<()> {
    screen.scene("The agent claims to be done. The check fails.")?;
    sandbox.write("tea.txt", "boil water\nadd tea\nwait four minutes\n")?;
    let answer = client.turn(&done(screen, 8, "Perfect tea!\n\n<promise>COMPLETE</promise>")?)?;
    let prompt = answer.continues()?;
    let output = prompt.lines().find(|line| line.contains(CHECK_OUTPUT));
    let output = output.with_context(|| unexpected("the agent reads the output of the check", prompt))?;
    screen.ralph(&format!("{}\n{output}", answer.message))
}

fn check_passes(sandbox: &Sandbox, screen: &mut Screen, client: &mut Client) -> Result<()> {
    screen.scene("The agent fixes it. The check passes, and the loop ends.")?;
    sandbox.write("tea.txt", "warm the pot\nboil water\nadd tea\nwait four minutes\n")?;
    let says = "The pot is warm, and so is the tea.\n\n<promise>COMPLETE</promise>";
    let answer = client.turn(&done(screen, 6, says)?)?;
    let ended = answer.prompt.is_none() && answer.message.contains("(complete)");
    expect(ended, "the loop ends complete", &answer.message)?;
    screen.ralph(&answer.message)
}

fn runner(sandbox: &Sandbox, screen: &mut Screen, now: Stamp) -> Result<()> {
    screen.scene("The same for nights and CI: `ralph run` starts a fresh agent per iteration.")?;
    let agent = sandbox.agent();
    let args = [
        "run",
        "bake scones for two",
        "--verify",
        sandbox.check(),
        "--delay",
        "0",
        "--agent-command",
        &agent,
    ];
    screen.you(&command_line("ralph", &args))?;
    let mut command = sandbox.command("ralph");
    command.args(args).env("RALPH_NOW", now.rfc3339());
    let output = sandbox.run(command, "")?;
    let starts = sandbox.agent_starts();
    ensure!(starts == 2, "expected: the agent starts twice; got: {starts}");
    let left_out = |line: &str| LEFT_OUT.iter().any(|part| line.starts_with(part));
    let lines = output.lines().filter(|line| !["", "Ralph run"].contains(line) && !left_out(line));
    screen.ralph(&lines.collect::<Vec<_>>().join("\n"))
}

/// Prints the end: where the project is, and how to start for real.
pub fn end(screen: &mut Screen, kept: Option<&Path>, is_installed: bool) -> Result<()> {
    match kept {
        None => screen.heading("", "Done. The temporary project was removed."),
        Some(folder) => {
            screen.heading("", &format!("Done. The temporary project is in {}", folder.display()))?;
            screen.remark("Look around in its folder tea: RALPH_DATA_DIR=../data ralph history")
        }
    }?;
    if is_installed {
        return screen.remark("Next: `ralph install`, then /ralph:start in Claude Code.");
    }
    screen
        .remark("Next: `cargo install --locked --path .`, `ralph install`, then /ralph:start in Claude Code.")
}

/// Shows an agent that claims to be done.
fn done(screen: &Screen, minutes: i64, says: &'static str) -> Result<Turn> {
    screen.agent(&says.replace("\n\n", " "))?;
    Ok(Turn { minutes, file: Some("tea.txt"), says })
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

/// Returns a command as one would type it.
fn command_line(program: &str, args: &[&str]) -> String {
    let word = |word: &&str| if word.contains(' ') { format!("\"{word}\"") } else { (*word).to_owned() };
    let words: Vec<_> = args.iter().map(word).collect();
    format!("{program} {}", words.join(" "))
}
