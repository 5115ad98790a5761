//! What the user submits: a reply after a question, and a pasted command that the client takes for text.

use crate::env::{Env, OTHER, Program, SESSION};

fn asked() -> Env {
    let env = Env::new();
    env.start("task", &[]);
    env.at(10).turn(SESSION, "Two ways.\n<promise>DECIDE:Tabs or spaces?</promise>").ended("decide");
    env
}

fn lines(first: &str) -> String {
    format!("{first}\nline two\nline three\nline four\nline five --max-iterations 7")
}

/// The other event of a command that the client did not take for text.
fn expands(env: &Env, command: &str, text: &str, prompt_id: &str) -> crate::env::Answer {
    let event = env.event(Program::SessionStartHook, SESSION, "UserPromptExpansion").prompt_id(prompt_id);
    event.field("command_name", format!("ralph:{command}")).field("command_args", text).run()
}

#[test]
fn a_reply_after_a_question_is_asked_about_once_and_changes_nothing() {
    for (signal, outcome) in [("DECIDE:Tabs or spaces?", "decide"), ("BLOCKED:no database", "blocked")] {
        let env = Env::new();
        env.start("task", &[]);
        env.at(10).turn(SESSION, &format!("<promise>{signal}</promise>")).ended(outcome);
        let before = env.read(&format!("ralph/{outcome}.txt"));
        let answer = env.at(20).submits(SESSION, "spaces, always").run();
        let context = answer.context.expect("the agent is told");
        let asked = signal.split_once(':').unwrap().1;
        for part in [asked, "Take this as the answer?", "/ralph:answer TEXT"] {
            assert!(context.contains(part), "{part}: {context}");
        }
        let told = answer.message.expect("the user is told");
        assert!(told.contains(asked) && told.contains("/ralph:answer TEXT"), "{told}");
        assert_eq!(answer.block, None);
        assert_eq!(env.read(&format!("ralph/{outcome}.txt")), before, "nothing is taken silently");
        assert_eq!(env.shown(SESSION)["state"], "stopped");
        env.at(30).submits(SESSION, "or tabs?").run().silent();
    }
}

#[test]
fn only_a_reply_in_that_session_to_an_open_question_is_asked_about() {
    let env = asked();
    env.submits(OTHER, "spaces").run().silent();
    for prompt in ["/compact", "<task-notification>done</task-notification>", " /ralph:status"] {
        env.submits(SESSION, prompt).run().silent();
    }
    assert!(env.submits(SESSION, "spaces").run().context.is_some(), "the mark is still there");

    let env = asked();
    env.ralph(&["answer", "spaces"]).ok();
    env.submits(SESSION, "I answered it").run().silent();

    let env = asked();
    env.ralph(&["start", "--session", SESSION, "--resume", "--ignore-open-questions"]).ok();
    env.submits(SESSION, "go on").run().silent();

    let env = asked();
    env.var("RALPH_RUN_ID", "a-run").submits(SESSION, "the prompt of a runner").run().silent();
}

#[test]
fn a_question_reaches_no_terminal_raw_and_at_no_length() {
    let env = Env::new();
    env.start("task", &[]);
    let question = format!("\u{9b}31m{}", "word ".repeat(9_000));
    env.turn(SESSION, &format!("<promise>DECIDE:{question}</promise>")).ended("decide");
    let answer = env.submits(SESSION, "yes").run();
    let (told, context) = (answer.message.unwrap(), answer.context.unwrap());
    assert!(
        told.len() < 400 && context.len() < 3_000 && !told.contains('\u{9b}') && !context.contains('\u{9b}')
    );
}

#[test]
fn a_prompt_of_a_session_without_a_loop_reads_and_writes_nothing() {
    let env = Env::new();
    // A command that read these would report or remove them.
    env.write(".claude/ralph-state.json", "damaged").write(".claude/STOP_LOOP", "");
    let before = env.snapshot();
    for prompt in ["hello", "/compact", "/ralph:unknown", "/ralph:status", ""] {
        env.submits(SESSION, prompt).run().silent();
    }
    let unknown = env.submits(SESSION, "/ralph:unknown\na\nb\nc\nd").run().block;
    assert!(unknown.is_some_and(|told| told.contains("see /ralph:help")));
    assert_eq!(env.snapshot(), before);
}

#[test]
fn an_answer_typed_in_the_session_resumes_the_loop_with_it() {
    for signal in ["DECIDE:Tabs or spaces?", "BLOCKED:no database"] {
        let env = Env::new();
        env.start("the task", &[]);
        env.at(10).turn(SESSION, &format!("<promise>{signal}</promise>"));
        let asked = env.types(SESSION, "answer", "").block.expect("no model call");
        assert!(
            asked.contains(signal.split_once(':').unwrap().1) && asked.contains("/ralph:answer TEXT"),
            "{asked}"
        );
        let text = "spaces, \"always\" $(touch pwned)";
        let answer = env.at(20).types(SESSION, "answer", text);
        let told = answer.message.expect("the user is told");
        assert!(told.contains("Answer saved.\nRalph resumed: the task"), "{told}");
        let prompt = env.ralph(&["relay", "answer", "--session", SESSION]).ok();
        assert!(prompt.contains(text) && prompt.contains("the task"), "{prompt}");
        assert_eq!(env.shown(SESSION)["state"], "running");
        assert_eq!(env.list("ralph/answered").len(), 1);
        env.submits(SESSION, "a plain message").run().silent();
        env.at(30).turn(SESSION, "On it.").continues();
        assert!(!env.exists("pwned"));
    }
}

#[test]
fn an_answer_that_resumes_nothing_is_saved_and_says_so() {
    let env = asked();
    env.ralph(&["answer", "spaces"]).ok();
    let told = env.types(SESSION, "answer", "tabs").block.unwrap();
    assert!(told.contains("already answered: spaces") && told.contains("--replace"), "{told}");
    let told = env.types(SESSION, "answer", "tabs --replace").message.unwrap();
    assert!(told.contains("Ralph resumed"), "{told}");

    let env = Env::new();
    env.start("task", &["--max-iterations", "1"]);
    env.turn(SESSION, "<promise>DECIDE:Tabs?</promise>").ended("decide");
    let told = env.types(SESSION, "answer", "yes").block.unwrap();
    assert!(told.contains("the answer is saved, but the loop is not resumed: limit"), "{told}");
    assert!(env.read("ralph/decide.txt").ends_with("## Answer\nyes\n"));

    let env = Env::new();
    assert!(env.types(SESSION, "answer", "yes").block.unwrap().contains("no open question"));
}

/// Two sessions whose loops ended with a question each; the second one's is in the file that is looked at first.
fn both_asked() -> Env {
    let env = Env::new();
    env.start("task A", &[]);
    env.start_in(OTHER, "task B", &[]);
    env.at(10).turn(SESSION, "<promise>BLOCKED:A needs a key</promise>").ended("blocked");
    env.at(20).turn(OTHER, "<promise>DECIDE:B tabs or spaces?</promise>").ended("decide");
    env
}

#[test]
fn each_of_two_sessions_is_asked_about_its_own_question() {
    let env = both_asked();
    for (session, own, others) in [(SESSION, "A needs a key", "B tabs"), (OTHER, "B tabs", "A needs a key")] {
        let answer = env.submits(session, "take the first one").run();
        let read = format!("{}\n{}", answer.message.unwrap(), answer.context.unwrap());
        assert!(read.contains(own) && !read.contains(others), "{read}");
        let shown = env.types(session, "answer", "").block.unwrap();
        assert!(shown.contains(own) && !shown.contains(others), "{shown}");
        let shown =
            env.call(Program::Ralph).args(&["answer"]).var("CLAUDE_CODE_SESSION_ID", session).run().ok();
        assert!(shown.contains(own) && !shown.contains(others), "{shown}");
    }
}

#[test]
fn an_answer_in_one_of_two_sessions_answers_its_question_and_resumes_its_loop() {
    for (session, other, own, open) in
        [(SESSION, OTHER, "A needs a key", "decide"), (OTHER, SESSION, "B tabs or spaces?", "blocked")]
    {
        let env = both_asked();
        let before = env.read(&format!("ralph/{open}.txt"));
        let told = env.at(30).types(session, "answer", "the first one").message.expect("resumed");
        assert!(told.contains("Answer saved.\nRalph resumed: task"), "{told}");
        let prompt = env.ralph(&["relay", "answer", "--session", session]).ok();
        let answered = prompt.split_once("Your earlier question was answered.").expect("the answer").1;
        assert!(answered.contains(&format!("{own}\n\nThe answer:\nthe first one")), "{prompt}");
        assert_eq!(env.list("ralph/answered").len(), 1);
        assert_eq!(env.read(&format!("ralph/{open}.txt")), before, "the other question is still open");
        assert_eq!(env.shown(other)["state"], "stopped");
        assert!(env.at(40).types(other, "answer", "x").message.expect("resumed").contains("Ralph resumed"));
    }
}

#[test]
fn a_session_that_asked_nothing_is_told_who_did_and_answers_nothing() {
    let env = asked();
    let before = env.read("ralph/decide.txt");
    for text in ["spaces", "spaces --replace", ""] {
        let told = env.types(OTHER, "answer", text).block.expect("no model call");
        for part in ["no loop of this session waits for an answer", "session 0f8c1a9e", "Tabs or spaces?"] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert!(told.contains("`ralph answer TEXT` in a terminal"), "{told}");
    }
    env.start_in(OTHER, "task", &["--ignore-open-questions"]);
    let told = env.types(OTHER, "answer", "spaces").message.expect("its loop continues");
    assert!(told.contains("session 0f8c1a9e asked"), "{told}");
    assert_eq!(env.read("ralph/decide.txt"), before);

    // The second question takes the place of the first, also if it has the same words.
    for question in ["Red or blue?", "Tabs or spaces?"] {
        let env = asked();
        env.at(20).start_in(OTHER, "task", &["--ignore-open-questions"]);
        env.at(30).turn(OTHER, &format!("<promise>DECIDE:{question}</promise>")).ended("decide");
        let told = env.submits(SESSION, "spaces").run();
        assert_eq!(told.context, None);
        let typed = env.types(SESSION, "answer", "spaces").block.expect("no model call");
        for told in [told.message.unwrap(), typed] {
            let said = format!("no longer open; session 7be0d3c2 asked: \"{question}\"");
            assert!(told.contains(&said), "{told}");
        }
        assert!(env.read("ralph/decide.txt").trim_end().ends_with("## Answer"));
    }

    let env = asked();
    std::fs::remove_file(env.path("ralph/decide.txt")).unwrap();
    let told = env.types(SESSION, "answer", "spaces").block.unwrap();
    assert!(told.contains("no longer open") && told.contains("/ralph:start --resume"), "{told}");
}

#[test]
fn a_question_of_several_lines_with_a_rule_in_it_is_answered_in_its_session() {
    let env = Env::new();
    env.start("task", &[]);
    env.turn(SESSION, "<promise>DECIDE:Which?  \n---\nfirst\n---\nsecond</promise>").ended("decide");
    assert!(env.submits(SESSION, "the first").run().context.unwrap().contains("Which?"));
    assert!(env.types(SESSION, "answer", "the first").message.unwrap().contains("Ralph resumed"));
}

#[test]
fn a_pasted_start_that_the_client_takes_for_text_starts_the_loop() {
    let env = Env::new();
    let answer = env.submits(SESSION, &lines("/ralph:start line one")).run();
    assert_eq!(answer.block, None);
    let told = answer.message.expect("what was understood is shown");
    assert!(told.contains("Ralph started: line one") && told.contains("at 7 iterations"), "{told}");
    assert!(told.contains("Ralph ran the pasted command"), "{told}");
    assert!(answer.context.expect("the agent is told").contains("You are in a Ralph loop"));
    assert_eq!(env.record(SESSION)["task"], "line one\nline two\nline three\nline four\nline five");
    env.turn(SESSION, "x").continues();
}

/// The client shows the agent 2 KB of a longer context.
#[test]
fn a_long_pasted_start_leaves_out_no_guidance() {
    let env = Env::new();
    env.types(SESSION, "forbid", "--pin touching the quokka");
    let task = format!("{}the end", "a long task\n".repeat(1_200));
    let context = env.submits(SESSION, &format!("/ralph:start {task}")).run().context.expect("started");
    assert!(context.encode_utf16().count() <= 10_000, "{}", context.len());
    assert!(context.contains("FORBIDDEN:\n- touching the quokka"), "{context}");
    let place = format!("the user's message, or {}", env.path(".claude/ralph-state.json").display());
    assert!(
        context.contains(&format!("[cut] Read the whole task before you continue: {place}")),
        "{context}"
    );
    assert_eq!(env.record(SESSION)["task"], task.as_str());
}

#[test]
fn a_long_line_counts_as_pasted_and_a_short_command_is_left_to_its_own_event() {
    let env = Env::new();
    let long = format!("/ralph:start {}", "word ".repeat(180));
    assert!(env.submits(SESSION, &long).run().context.is_some());
    let env = Env::new();
    for prompt in ["/ralph:start a\nb\nc", "/ralph:start do it", "ralph:start\na\nb\nc\nd"] {
        env.submits(SESSION, prompt).run().silent();
    }
    assert!(!env.exists(".claude"));
}

/// Without an id of the prompt it cannot be told whether the command expands too.
#[test]
fn a_pasted_command_of_an_older_client_is_answered_with_what_to_do() {
    let env = Env::new();
    let submit = |prompt: &str| {
        let event = env.event(Program::SessionStartHook, SESSION, "UserPromptSubmit");
        event.field("prompt", prompt).run()
    };
    for command in ["start", "forbid"] {
        let answer = submit(&lines(&format!("/ralph:{command} x")));
        let how = format!("type `/ralph:{command} ` and paste the rest after it");
        assert!(answer.message.as_deref().is_some_and(|told| told.contains(&how)), "{answer:?}");
        assert!(answer.context.as_deref().is_some_and(|read| read.contains(&how)), "{answer:?}");
        assert_eq!(answer.block, None, "typed in part, the command is still to expand");
    }
    assert!(!env.exists(".claude"));
    submit("/ralph:start x").silent();
    // 2.1.163 expands it first.
    assert!(env.types(SESSION, "start", &lines("x")).message.unwrap().contains("Ralph started"));
    submit(&lines("/ralph:start x")).silent();
}

#[test]
fn a_long_command_for_which_both_events_come_is_run_once_in_either_order() {
    let text = lines("line one");
    for submitted_first in [true, false] {
        let env = Env::new();
        let submit = || env.submits(SESSION, &format!("/ralph:start {text}")).run();
        let expand = || expands(&env, "start", &text, "prompt-1");
        let (first, second) = if submitted_first { (submit(), expand()) } else { (expand(), submit()) };
        assert!(first.message.unwrap().contains("Ralph started"));
        second.silent();
        let relayed = env.ralph(&["relay", "start", "--session", SESSION]).ok();
        assert!(!relayed.contains("did not pass"), "{relayed}");
        assert_eq!(relayed.contains("You are in a Ralph loop"), !submitted_first, "{relayed}");
        let run_id = env.record(SESSION)["run_id"].clone();
        // The same text once more is another prompt, and so another start.
        let again = expands(&env, "start", &text, "prompt-2").message.unwrap();
        assert!(again.contains("a loop is already running"), "{again}");
        assert_eq!(env.record(SESSION)["run_id"], run_id);
    }
}

/// What the client submits may have blank lines or a form of the text that its command does not have.
#[test]
fn a_command_whose_events_differ_in_length_is_run_once_in_either_order() {
    let long = "/ralph:start\n\n\n\nline one";
    for submitted_first in [true, false] {
        let env = Env::new();
        let submit = || env.submits(SESSION, long).run();
        let expand = || expands(&env, "start", "line one", "prompt-1");
        let (first, second) = if submitted_first { (submit(), expand()) } else { (expand(), submit()) };
        assert!(first.message.unwrap().contains("Ralph started: line one"));
        second.silent();
    }
    // Two events of one kind are two commands.
    let env = Env::new();
    for text in ["one", "two"] {
        let told = expands(&env, "forbid", text, "prompt-1").block.expect("no model call");
        assert!(told.contains(&format!("forbidden: {text}")), "{told}");
    }
}

#[test]
fn a_pasted_command_without_work_for_the_agent_is_answered_without_a_model_call() {
    let env = Env::new();
    let told = env.submits(SESSION, &lines("/ralph:forbid touching")).run().block.expect("no model call");
    assert!(told.contains("forbidden: touching line two"), "{told}");
    let told = env.submits(SESSION, &lines("/ralph:start x --max-iteration 3")).run().block.unwrap();
    assert!(told.contains("did you mean --max-iterations?"), "{told}");
    env.turn(SESSION, "x").silent();
}

#[test]
fn a_yes_after_the_reply_takes_it_as_the_answer_and_resumes_the_loop() {
    for yes in ["yes", "Yes, please.", "ok!"] {
        let env = asked();
        env.at(20).submits(SESSION, "spaces, always").run();
        let answer = env.at(30).submits(SESSION, yes).run();
        let context = answer.context.expect("the agent has work");
        assert!(context.contains("spaces, always") && context.contains("task"), "{context}");
        assert_eq!(env.shown(SESSION)["state"], "running");
        env.at(40).submits(SESSION, "yes").run().silent();
    }
    let env = asked();
    env.at(20).submits(SESSION, "spaces, always").run();
    env.at(30).submits(SESSION, "yes, but first explain").run().silent();
    env.at(40).submits(SESSION, "yes").run().silent();
    assert_eq!(env.shown(SESSION)["state"], "stopped", "it was asked about once");
}

#[test]
fn a_pasted_command_that_does_not_exist_never_reaches_the_agent() {
    let env = Env::new();
    let answer = env.submits(SESSION, &lines("/ralph:strat do it")).prompt_id("p1").run();
    assert_eq!(
        answer.block.unwrap(),
        "error: no such slash command: strat\nhint: did you mean /ralph:start?"
    );
}

#[test]
fn a_pasted_start_beside_a_running_loop_is_not_said_to_have_run() {
    let env = Env::new();
    env.start("task", &[]);
    let told = env.submits(SESSION, &lines("/ralph:start do it")).prompt_id("p1").run().message.unwrap();
    assert!(told.contains("already running") && !told.contains("ran the pasted command"), "{told}");
}
