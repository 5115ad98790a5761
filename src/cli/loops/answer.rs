//! `ralph answer`: shows or answers the question in `ralph/decide.txt` or `ralph/blocked.txt`.

use crate::cli::{Failure, Invocation};
use crate::store::state::question;

pub fn answer(call: &Invocation) -> Result<String, Failure> {
    let (project, text) = (&call.project, call.text_or_stdin("text")?);
    let open = match question::decide(project)? {
        None => question::blocked(project)?,
        open => open,
    };
    let Some(question) = open else {
        return Err(Failure::refused("no open question in this project")
            .hint("the agent asks one with <promise>DECIDE:question</promise>"));
    };
    if text.trim().is_empty() {
        let answer = match question.answer.as_str() {
            "" => "Not answered yet. Answer with: ralph answer TEXT",
            answer => answer,
        };
        return Ok(format!("{}\n\n{answer}", question.question));
    }
    if !question.answer.is_empty() && !call.flag("replace") {
        return Err(Failure::refused(format!("already answered: {}", question.answer))
            .hint("overwrite the answer with --replace"));
    }
    question::answer(&question, &text)?;
    let path = question.path.display();
    Ok(format!(
        "Answer saved in {path}. Continue with /ralph:start --resume in the session, or with `ralph run`."
    ))
}
