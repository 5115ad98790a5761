//! `ralph answer`: shows or answers the question in `ralph/decide.txt` or `ralph/blocked.txt`.

use super::slash::SlashReply;
use super::start;
use crate::cli::{Failure, Invocation, Project, World};
use crate::core::event::{self, Answered, EventKind};
use crate::core::message::short_id;
use crate::core::outcome::Outcome;
use crate::core::record::{ArmedLoop, Engine, StoredLoop};
use crate::core::request::StartRequest;
use crate::core::text::clean;
use crate::store::events;
use crate::store::state;
use crate::store::state::question::{self, Question};
use crate::store::user::{answers, armed, open_question, reply};

pub fn command(call: &Invocation) -> Result<String, Failure> {
    let text = call.text_or_stdin("text")?;
    let own = call.session().map(|session| of_session(&call.world, &call.project, session)).transpose()?;
    let question = match own.flatten() {
        None => open_question(&call.world, &call.project)?.ok_or_else(no_question)?,
        Some(question) => question,
    };
    if question.foreign {
        return adopt(call, &question, &text);
    }
    if text.trim().is_empty() {
        return Ok(shown(&question, "ralph answer TEXT"));
    }
    give(&call.world, &call.project, &question, &text, call.flag("replace"))
}

/// Answers a question of this user's own loop from a terminal.
pub fn give(
    world: &World,
    project: &Project,
    question: &Question,
    text: &str,
    replace: bool,
) -> Result<String, Failure> {
    let question = save(world, project, question, text, replace)?;
    note_answer(world, project, &question, "terminal");
    let path = clean::visible(&question.path.display().to_string());
    Ok(format!(
        "Answer saved in {path}. Continue with /ralph:start --resume in the session, or with `ralph run`."
    ))
}

/// Shows a question that no loop of this user asked. With a text, or with `--adopt` for the answer that it has, question
/// and answer are kept with the user's own, and the next start or run tells them to the agent.
fn adopt(call: &Invocation, question: &Question, text: &str) -> Result<String, Failure> {
    let Invocation { world, project, .. } = call;
    let adopts = call.flag("adopt");
    if text.trim().is_empty() && !adopts {
        let how = "answer it with `ralph answer TEXT`, or accept the answer in the file with `ralph answer --adopt`";
        return Ok(format!(
            "{}\n\nIgnored, because it is not from one of your loops: {how}",
            shown(question, "ralph answer TEXT")
        ));
    }
    let answered = match text.trim() {
        "" if question.answer.is_empty() => {
            return Err(
                Failure::refused("the question has no answer to adopt").hint("use `ralph answer TEXT`")
            );
        }
        "" => question.clone(),
        text => save(world, project, question, text, call.flag("replace"))?,
    };
    let mut list = answers::load(world, project)?;
    answers::add(&mut list, [answered.whole()]);
    answers::save(world, project, &list)?;
    question::file_away(project, &answered, world.now)?;
    Ok(format!(
        "Adopted with the answer \"{}\". The next /ralph:start or `ralph run` passes it to the agent.",
        clean::excerpt(&answered.answer, 160)
    ))
}

/// Shows the question with which the loop of this session ended, or answers it and resumes the loop.
pub fn in_session(
    world: &World,
    project: &Project,
    session: &str,
    text: &str,
    replace: bool,
    from: &str,
) -> Result<SlashReply, Failure> {
    let question = match of_session(world, project, session)? {
        None => return Err(not_own(world, project, session)?),
        Some(question) => question,
    };
    if text.is_empty() {
        return Ok(shown(&question, "/ralph:answer TEXT").into());
    }
    let question = save(world, project, &question, text, replace)?;
    note_answer(world, project, &question, from);
    open_question::take(world, session);
    reply::close(world, project, session);
    let request = StartRequest { resume: true, ..StartRequest::default() };
    let resumed = start::start_with(world, project, session, &request, true, Some(question));
    let mut reply = resumed.map_err(|failure| {
        let message = format!("the answer is saved, but the loop is not resumed: {}", failure.message);
        Failure { message, ..failure }
    })?;
    reply.user = format!("Answer saved.\n{}", reply.user);
    Ok(reply)
}

/// Says which answer the agent is told, and where it comes from: anyone who can write the project can write the file.
fn handed_note(world: &World, project: &Project, question: &Question) -> anyhow::Result<String> {
    let path = question.path.strip_prefix(&project.root).unwrap_or(&question.path);
    let (path, answer) = (clean::visible(&path.display().to_string()), clean::excerpt(&question.answer, 300));
    Ok(match answers::is_given(world, project, &question.whole())? {
        true => format!("the agent gets your answer: \"{answer}\""),
        false => format!(
            "the agent gets the answer in {path}: \"{answer}\"; it was written into the file, not given with \
             `ralph answer`"
        ),
    })
}

/// Gives the loop the answers to earlier questions, and what blocked an earlier run. Returns what the user should know of the
/// answers.
pub fn hand_over(
    world: &World,
    project: &Project,
    run: &mut ArmedLoop,
    question: Option<&Question>,
) -> anyhow::Result<Vec<String>> {
    let handed = answers::hand_over(world, project, run, question)?;
    // One question may be both.
    let mut notes: Vec<String> =
        handed.iter().map(|question| handed_note(world, project, question)).collect::<Result<_, _>>()?;
    notes.dedup();
    Ok(notes)
}

/// Keeps the answers for the next run. Returns what the user should know of them.
pub fn keep_answers(world: &World, project: &Project, run: &StoredLoop) -> Vec<String> {
    let saved = answers::save(world, project, &run.pending.answers);
    let failed = saved.err().map(|error| format!("could not save the answers for a later run: {error:#}"));
    let blocked = run.pending.blocked.as_ref().map(|blocked| {
        let what = clean::excerpt(blocked.split_once('\n').map_or(blocked, |(_, reason)| reason), 160);
        format!(
            "ralph/blocked.txt still exists: \"{what}\". The agent sees it; tell it how that was resolved with \
             `ralph answer TEXT`"
        )
    });
    failed.into_iter().chain(blocked).collect()
}

/// Returns the question with which the loop of this session ended or for whose answer it waits, if it is still there.
pub fn of_session(world: &World, project: &Project, session: &str) -> anyhow::Result<Option<Question>> {
    let Some(run) = own_loop(&started(world, project)?, session).cloned() else { return Ok(None) };
    match question::of_loop(project, &run)? {
        Some(question) => Ok(Some(question)),
        None => question::of_waiting(world, project, &run),
    }
}

/// Adds an answer to the events of the run that asked.
pub fn note_answer(world: &World, project: &Project, question: &Question, from: &str) {
    let loops = started(world, project).unwrap_or_default();
    let asked = |run: &ArmedLoop| {
        question::of_loop(project, run).is_ok_and(|own| own.is_some_and(|own| own.path == question.path))
    };
    if let Some((_, run)) = loops.iter().find(|(_, run)| asked(run)) {
        let (asked, answer) = (event::text(question.asked()), event::text(&question.answer));
        let answered = Answered { question: asked, answer, from: from.to_owned() };
        events::note(world, run, &[EventKind::Answered(answered)]);
    }
}

/// Returns who asked the question that is open in this project, and what it is.
pub fn asked_by(world: &World, project: &Project) -> anyhow::Result<Option<String>> {
    let is_open = |question: &Question| question.answer.is_empty() && !question.foreign;
    let Some(open) = open_question(world, project)?.filter(is_open) else {
        return Ok(None);
    };
    let loops = started(world, project)?;
    let is_asker =
        |run: &ArmedLoop| question::of_loop(project, run).is_ok_and(|own| own.as_ref() == Some(&open));
    let asker = match loops.iter().find(|(_, run)| is_asker(run)) {
        Some((_, run)) if run.engine == Engine::Runner => "`ralph run`".to_owned(),
        Some((id, _)) => format!("session {}", short_id(id)),
        None => "another loop".to_owned(),
    };
    Ok(Some(format!("{asker} asked: \"{}\"", clean::excerpt(open.asked(), 160))))
}

fn started(world: &World, project: &Project) -> anyhow::Result<Vec<(String, ArmedLoop)>> {
    let read = || state::peek(project).map(Option::unwrap_or_default);
    Ok(armed::read_started(world, project, read)?.1.loops)
}

fn own_loop<'a>(loops: &'a [(String, ArmedLoop)], session: &str) -> Option<&'a ArmedLoop> {
    loops.iter().find(|(id, _)| id == session).map(|(_, run)| run)
}

/// Returns the failure of an answer in a session that has nothing to answer.
fn not_own(world: &World, project: &Project, session: &str) -> anyhow::Result<Failure> {
    let loops = started(world, project)?;
    let outcome = own_loop(&loops, session).and_then(|run| run.outcome);
    let has_asked = matches!(outcome, Some(Outcome::Decide | Outcome::Blocked));
    let what = match has_asked {
        true => "the question of this session's loop is no longer open",
        false => "no loop of this session waits for an answer",
    };
    Ok(match asked_by(world, project)? {
        Some(other) => Failure::refused(format!("{what}; {other}"))
            .hint("to answer that question, use `ralph answer TEXT` in a terminal"),
        None if has_asked => Failure::refused(what).hint("resume it with /ralph:start --resume"),
        None => no_question(),
    })
}

fn no_question() -> Failure {
    Failure::refused("no open question in this project")
        .hint("wait until a loop ends with DECIDE or BLOCKED; `ralph status` shows what each loop is doing")
}

/// Returns a question of this project. One that a loop of the user asked comes first, then one without an answer.
fn open_question(world: &World, project: &Project) -> anyhow::Result<Option<Question>> {
    let mut questions: Vec<Question> = question::all(world, project)?.into_iter().flatten().collect();
    questions.sort_by_key(|question| (question.foreign, !question.answer.is_empty()));
    Ok(questions.into_iter().next())
}

/// Returns the answer to pass to the agent. Refuses if a question is unanswered; a block may have been resolved
/// without an answer.
pub fn refuse_unanswered(
    world: &World,
    project: &Project,
    request: &StartRequest,
) -> Result<Option<Question>, Failure> {
    match question::decide(world, project)? {
        Some(question) if !question.answer.is_empty() => Ok(Some(question)),
        Some(question) if !request.ignore_open_questions => Err(Failure::refused(format!(
            "unanswered question in {}:\n{}",
            question.path.display(),
            clean::block(&question.question)
        ))
        .hint(
            "answer it with /ralph:answer TEXT or `ralph answer TEXT`, or start with --ignore-open-questions",
        )),
        _ => Ok(question::blocked(world, project)?.filter(|blocked| !blocked.answer.is_empty())),
    }
}

fn shown(question: &Question, command: &str) -> String {
    match question.answer.as_str() {
        "" => format!("{}\n\nNot answered yet. Answer with: {command}", question.question),
        answer => format!("{}\n\n{answer}", question.question),
    }
}

/// Saves the answer, and that the user gave it. Returns the question with it.
fn save(
    world: &World,
    project: &Project,
    question: &Question,
    text: &str,
    replace: bool,
) -> Result<Question, Failure> {
    if !question.answer.is_empty() && !replace {
        return Err(Failure::refused(format!("already answered: {}", question.answer))
            .hint("overwrite the answer with --replace"));
    }
    // Noted first: a runner that waits takes from the file only what was given.
    answers::note_given(world, project, &question.with_answer(text).whole())?;
    Ok(question::answer(project, question, text)?)
}
