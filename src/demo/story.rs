//! The story, scene by scene. Each scene checks that what it tells of has happened.

use super::call::call;
use super::client::{Client, Turn, unlike};
use super::interrupt::Interrupt;
use super::show::Show;
use super::stage::Stage;
use crate::called::GUIDANCE;
use crate::core::time::Stamp;
use anyhow::{Context, Result, ensure};
use serde_json::json;

/// All the minutes of the story.
const MINUTES: i64 = 14 + 1 + 11 + NIGHT + 1 + 8 + 6;
const NIGHT: i64 = 8 * 60 + 34;

const TASK: &str = "write a recipe for tea";
const FORBIDDEN: &str = "the microwave";
/// The last line of every prompt, which says how to signal.
const SIGNALS: &str = "Done, proven?";

/// What the runner says and the demo does not show, for the sake of those who read it all: what this project and this
/// scene have to do with it, and less than the whole table.
const LEFT_OUT: [&str; 7] =
    ["Ralph: no git", "Ralph: dropped", "── iteration 1 ok", "───", "Avg/iter", "Stuck", "Log"];

pub fn tell(stage: &Stage, show: &mut Show, interrupt: &Interrupt, now: Stamp) -> Result<()> {
    show.remark(
        "A whole loop in a throw-away project. Agent and Claude Code are a script: no key, no network. What stands \
         behind a bar, Ralph's real programs said just now.",
    )?;
    let mut client = Client::new(stage, interrupt, now.plus_ms(-MINUTES * 60_000));
    start(stage, show, &mut client)?;
    finding(stage, show, &mut client)?;
    guidance(stage, show, interrupt, &mut client)?;
    night(show, &mut client)?;
    pivot(show, &mut client)?;
    red(stage, show, &mut client)?;
    green(stage, show, &mut client)?;
    runner(stage, show, interrupt, client.now())
}

fn start(stage: &Stage, show: &mut Show, client: &mut Client) -> Result<()> {
    show.scene("You give it a task, and a check that has to pass before \"done\" is believed.")?;
    let text = format!("{TASK} --verify \"{}\" --max-idle 2", stage.check());
    show.you(&format!("/ralph:start {text}"))?;
    let answer = client.types("ralph:start", &text)?;
    must(answer.message.starts_with("Ralph started"), "a loop was to start", &answer.message)?;
    show.ralph(answer.message.lines().next().unwrap_or_default())
}

fn finding(stage: &Stage, show: &mut Show, client: &mut Client) -> Result<()> {
    show.scene("The agent stops early. The Stop hook has read its work and sends it back.")?;
    stage.write("tea.txt", "boil water\nadd tea\n")?;
    stage.write("Makefile", "tea:\n\t/Users/sam/bin/kettle --on\n")?;
    let says = "Wrote tea.txt and a Makefile. This seems a good place to stop!";
    show.agent(says)?;
    let answer = client.turn(Turn { minutes: 14, tool: write("Makefile"), says })?;
    let prompt = answer.sends_on()?;
    must(prompt.contains("Makefile:2"), "the scan was to find the path in the Makefile", prompt)?;
    show.ralph(&answer.message)?;
    show.ralph_goes_on(&part(prompt, "FORBIDDEN:", SIGNALS)?)
}

fn guidance(stage: &Stage, show: &mut Show, interrupt: &Interrupt, client: &mut Client) -> Result<()> {
    show.scene("While it works you have an opinion, in another terminal.")?;
    let args = ["forbid", FORBIDDEN];
    show.you(&typed(GUIDANCE, &args))?;
    client.passes(1);
    let mut command = stage.command(GUIDANCE);
    command.args(args).env("RALPH_NOW", client.now().rfc3339());
    let said = call(command, "", interrupt, |_| Ok(()))?.well(GUIDANCE)?;
    must(said.starts_with("forbidden: "), "the word was to be taken", &said)?;
    show.ralph(&said)?;
    stage.write("Makefile", "tea:\n\tkettle --on\n")?;
    let says = "The kettle is now found wherever it is, not where Sam keeps it.";
    show.agent(says)?;
    let answer = client.turn(Turn { minutes: 11, tool: write("Makefile"), says })?;
    let prompt = answer.sends_on()?;
    must(prompt.contains(FORBIDDEN), "the very next prompt was to hold the guidance", prompt)?;
    must(!prompt.contains("Makefile"), "the finding was to go once it was mended", prompt)?;
    show.ralph(&part(prompt, "FORBIDDEN:", SIGNALS)?)?;
    show.remark("Your word is in its very next prompt. Sam's path is not: that one is mended.")
}

fn night(show: &mut Show, client: &mut Client) -> Result<()> {
    show.scene("You shut the laptop and sleep. The night is wall time, not runtime.")?;
    client.passes(NIGHT);
    let answer = client.resumes()?;
    must(answer.context.contains(TASK), "the agent was to be told its task again", &answer.context)?;
    must(
        answer.message.contains("Runtime: 0.4h/9.0h | Wall: 9.0h"),
        "the night was to count as wall time alone",
        &answer.message,
    )?;
    show.ralph(&answer.message)
}

fn pivot(show: &mut Show, client: &mut Client) -> Result<()> {
    show.scene("The agent turns philosophical.")?;
    let says = "What is tea, if not patience? Let me dwell on that for a while.";
    show.agent(says)?;
    let answer = client.turn(Turn { minutes: 1, tool: None, says })?;
    let warned = answer.sends_on()?.contains("one more ends the loop");
    must(warned, "a turn without any work was to be answered with a warning", &answer.message)?;
    show.ralph(&answer.message)
}

fn red(stage: &Stage, show: &mut Show, client: &mut Client) -> Result<()> {
    show.scene("It says it is done. The check says otherwise.")?;
    stage.write("tea.txt", "boil water\nadd tea\nwait four minutes\n")?;
    let answer = client.turn(done(show, 8, "Perfect tea!\n\n<promise>COMPLETE</promise>")?)?;
    let prompt = answer.sends_on()?;
    must(prompt.contains("nobody warmed the pot"), "the red check was to be told to the agent", prompt)?;
    show.ralph(&answer.message)?;
    // The message has told which command failed; the agent gets its last lines too.
    let told = part(prompt, "Your finish", "FORBIDDEN:")?;
    show.ralph_goes_on(told.split_once('\n').map_or("", |(_, tail)| tail))
}

fn green(stage: &Stage, show: &mut Show, client: &mut Client) -> Result<()> {
    show.scene("It warms the pot, and this time it is believed.")?;
    stage.write("tea.txt", "warm the pot\nboil water\nadd tea\nwait four minutes\n")?;
    let answer =
        client.turn(done(show, 6, "The pot is warm. So is the tea.\n\n<promise>COMPLETE</promise>")?)?;
    let ended = answer.prompt.is_none() && answer.message.starts_with("Ralph ended (complete)");
    must(
        ended && answer.message.contains("the check passed"),
        "the loop was to end, verified",
        &answer.message,
    )?;
    show.ralph(&answer.message)
}

fn runner(stage: &Stage, show: &mut Show, interrupt: &Interrupt, now: Stamp) -> Result<()> {
    show.scene("The same from outside, for nights and CI: a fresh agent at every iteration.")?;
    let agent = stage.agent();
    let args =
        ["run", "bake scones for two", "--verify", stage.check(), "--delay", "0", "--agent-command", &agent];
    show.you(&typed("ralph", &args))?;
    let mut command = stage.command("ralph");
    command.args(args).env("RALPH_NOW", now.rfc3339());
    let mut first = true;
    let said = call(command, "", interrupt, |line| match line {
        _ if LEFT_OUT.iter().any(|part| line.starts_with(part)) || ["", "Ralph run"].contains(&line) => {
            Ok(())
        }
        _ if std::mem::take(&mut first) => show.ralph(line),
        _ => show.ralph_goes_on(line),
    })?;
    let (code, prompts) = (said.code, stage.prompts());
    let text = said.well("ralph run")?;
    must(code == Some(0) && text.contains("COMPLETE (code 0)"), "the run was to end complete", &text)?;
    ensure!(prompts == 2, "the agent was to be started twice, and was started {prompts} times");
    Ok(())
}

pub fn farewell(stage: &Stage, show: &mut Show) -> Result<()> {
    match stage.kept() {
        None => show.end("That is all. The project is gone again, and nothing of yours was touched."),
        Some(root) => {
            show.end(&format!("That is all. It is kept in {}", root.display()))?;
            show.remark("To look around, in its folder tea: RALPH_DATA_DIR=../data ralph history")
        }
    }?;
    if stage.is_whole() {
        return show.remark("For real: ralph install, then /ralph:start in Claude Code.");
    }
    show.remark("For real: cargo install --locked --path . and ralph install, then /ralph:start")?;
    show.remark("in Claude Code.")
}

/// The agent claims to be done.
fn done(show: &mut Show, minutes: i64, says: &'static str) -> Result<Turn> {
    show.agent(&says.replace("\n\n", " "))?;
    Ok(Turn { minutes, tool: write("tea.txt"), says })
}

fn write(file: &'static str) -> Option<(&'static str, serde_json::Value)> {
    Some(("Write", json!({"file_path": file})))
}

/// The lines of a prompt from one that begins so, up to one that begins otherwise.
fn part(prompt: &str, from: &str, to: &str) -> Result<String> {
    let lines = prompt.lines().skip_while(|line| !line.starts_with(from));
    let part: Vec<_> = lines.take_while(|line| !line.starts_with(to)).collect();
    (!part.is_empty())
        .then(|| part.join("\n"))
        .with_context(|| unlike(&format!("the prompt was to say \"{from}\""), prompt))
}

fn must(happened: bool, what: &str, said: &str) -> Result<()> {
    ensure!(happened, "{}", unlike(what, said));
    Ok(())
}

/// A command as somebody would type it.
fn typed(program: &str, args: &[&str]) -> String {
    let word = |word: &&str| if word.contains(' ') { format!("\"{word}\"") } else { (*word).to_owned() };
    let words: Vec<_> = args.iter().map(word).collect();
    format!("{program} {}", words.join(" "))
}
