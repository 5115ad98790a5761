//! `ralph answer`: shows the question that waits in `ralph/decide.txt`, or what stands in `ralph/blocked.txt`, or writes the
//! answer below it.

use super::failure::Failure;
use crate::store::project::Project;
use crate::store::question;

pub fn answer(project: &Project, text: &str, replace: bool) -> Result<String, Failure> {
    let Some(question) =
        question::decide(project)?.map_or_else(|| question::blocked(project), |open| Ok(Some(open)))?
    else {
        return Err(Failure::refused("no question waits for an answer in this project")
            .hint("The agent asks one with <promise>DECIDE:question</promise>."));
    };
    if text.trim().is_empty() {
        let answer =
            if question.answer.is_empty() { "Not answered yet: ralph answer TEXT" } else { &question.answer };
        return Ok(format!("{}\n\n{answer}", question.question));
    }
    if !question.answer.is_empty() && !replace {
        return Err(Failure::refused(format!("it is answered already: {}", question.answer))
            .hint("--replace writes the new answer in its place."));
    }
    question::answer(&question, text)?;
    Ok(format!(
        "Answered in {}. /ralph:start --resume in the session, or `ralph run`, goes on with it.",
        question.path.display()
    ))
}
