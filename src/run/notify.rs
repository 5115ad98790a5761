//! Notifications of a run: its ending, its question and the wait for an answer, and time without progress.

use super::inbox::{Interruption, Message};
use super::{Runner, SESSION};
use crate::core::decide::limits;
use crate::core::event::notice::{Notice, terminal};
use crate::core::event::{self, Answered, EventKind};
use crate::core::record::{ArmedLoop, LoopState, Waiting, WaitingFor};
use crate::core::settings::{NotifySettings, Resolved};
use crate::core::text::clean;
use crate::core::time::{self, Stamp};
use crate::notify::answers::Topic;
use crate::store::config;
use crate::store::process::notify;
use crate::store::project::Project;
use crate::store::state::ending;
use crate::store::state::question::{self, Question};
use crate::store::user::answers;
use crate::store::user::reply::{self, OpenReply};
use crate::store::world::{self, Instant, World};
use anyhow::Result;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

/// How often to look for progress, or for an answer given in a terminal.
const POLL: Duration = Duration::from_millis(500);

/// Notifies the user: through the terminal, the user's command and the user's service. Returns what failed.
fn tell(project: &Project, notice: &Notice, settings: &NotifySettings, is_json: bool) -> Vec<String> {
    let mut stdout = std::io::stdout().lock();
    // Escape sequences in the output of a script would be noise.
    if settings.terminal && !is_json && stdout.is_terminal() {
        let text = |name: &str| world::text(name);
        let terminal = terminal::Terminal {
            name: text("TERM").unwrap_or_default(),
            is_vte: text("VTE_VERSION").is_some(),
            in_tmux: text("TMUX").is_some(),
        };
        let sequence = terminal::sequence(notice, &terminal);
        let _ = stdout.write_all(sequence.as_bytes()).and_then(|()| stdout.flush());
    }
    drop(stdout);
    notify::send(project, notice, settings)
}

/// Watches for progress while the run works and waits, and tells the user once if there was none for long.
pub struct Progress(Arc<Mutex<Watched>>);

struct Watched {
    run: ArmedLoop,
    since: Instant,
    told: bool,
    /// The run waits for the user, who knows that.
    is_asking: bool,
}

impl Watched {
    fn begin(&mut self) {
        (self.since, self.told) = (Instant::now(), false);
    }
}

impl Progress {
    pub fn watch(
        world: &World,
        project: &Project,
        run: &ArmedLoop,
        is_json: bool,
    ) -> std::io::Result<Progress> {
        let watched = Watched { run: run.clone(), since: Instant::now(), told: false, is_asking: false };
        let watched = Arc::new(Mutex::new(watched));
        let (weak, world, project) = (Arc::downgrade(&watched), world.clone(), project.clone());
        Builder::new().spawn(move || {
            while let Some(watched) = weak.upgrade() {
                look(&world, &project, &watched, is_json);
                drop(watched);
                std::thread::sleep(POLL);
            }
        })?;
        Ok(Progress(watched))
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of an iteration: progress is what the breaker counts as such.
    pub fn note(&self, run: &ArmedLoop) {
        let mut watched = self.lock();
        watched.run = run.clone();
        if run.circuit.turns_without_progress() == 0 {
            watched.begin();
        }
    }

    fn set_asking(&self, is_asking: bool) {
        let mut watched = self.lock();
        watched.begin();
        watched.is_asking = is_asking;
    }
}

fn look(world: &World, project: &Project, watched: &Mutex<Watched>, is_json: bool) {
    let mut watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
    let without_ms = i64::try_from(watched.since.elapsed().as_millis()).unwrap_or(i64::MAX);
    // The settings are read at most once a minute of silence.
    if watched.told || watched.is_asking || without_ms < 60_000 {
        return;
    }
    let world = world.later();
    let settings = config::load_for(&world, project, &watched.run).notify();
    if settings.idle_ms == 0 || without_ms < settings.idle_ms {
        return;
    }
    watched.told = true;
    let notice = Notice::no_progress(&watched.run, &project.root.to_string_lossy(), without_ms, world.now);
    let notice = notice.in_session(SESSION);
    tell(project, &notice, &settings, is_json);
}

impl Runner<'_> {
    /// Tells the user how the run ended. A question that the user knows is an ending like others.
    pub(super) fn announce(&mut self, world: &World, resolved: &Resolved) {
        let settings = resolved.notify();
        let notice = match self.asked {
            true => {
                reply::close(world, self.project, SESSION);
                let notice = Notice::ended(&self.run, &self.project.root.to_string_lossy(), world.now);
                notice.in_session(SESSION)
            }
            false => ending::notice(world, self.project, SESSION, &self.run, &settings),
        };
        let failed = tell(self.project, &notice, &settings, self.screen.is_json());
        failed.iter().for_each(|note| self.screen.note(note));
    }

    /// Tells the user that the service has failed for so long.
    pub(super) fn notify_outage(&mut self, words: &str, lasted_ms: i64, now: Stamp) {
        let settings = self.settings().0.notify();
        let notice = Notice::outage(&self.run, &self.project.root.to_string_lossy(), words, lasted_ms, now);
        let notice = notice.in_session(SESSION);
        let failed = tell(self.project, &notice, &settings, self.screen.is_json());
        failed.iter().for_each(|note| self.screen.note(note));
    }

    /// Waits for the user's answer if the run ended with a question and `notify.answers` is configured. Returns whether
    /// the run continues with it.
    pub(super) fn wait_for_answer(&mut self) -> Result<bool> {
        let (resolved, settings) = self.settings();
        let notify = resolved.notify();
        if notify.answers.is_none()
            || !ending::takes_answer(&self.run)
            || limits::reached(&self.run, &settings).is_some()
        {
            return Ok(false);
        }
        let (world, ended) = (self.world.later(), self.run.clone());
        for note in ending::ask(&world, self.project, SESSION, &ended) {
            self.screen.note(&note);
        }
        let Some(open) = reply::load(&world, self.project, SESSION) else { return Ok(false) };
        let Some(topic) = Topic::of(&notify, &open) else {
            self.screen.warn("notify.answers: the address has no ntfy topic; use https://HOST/TOPIC");
            return Ok(false);
        };
        self.announce(&world, &resolved);
        self.asked = true;
        let answered = self.hold_for_answer(&ended, &notify, open, topic)?;
        if self.run.outcome.is_some() {
            // Stopped elsewhere meanwhile.
            return Ok(false);
        }
        let Some((question, from)) = answered else {
            self.run = ended;
            return Ok(false);
        };
        self.continue_with(ended, &question, &from)?;
        Ok(self.run.is_alive())
    }

    /// Waits, and shows that the run waits. Returns the answered question and where the answer came from.
    fn hold_for_answer(
        &mut self,
        ended: &ArmedLoop,
        notify: &NotifySettings,
        open: OpenReply,
        topic: Topic,
    ) -> Result<Option<(Question, String)>> {
        let since = self.now();
        let until = since.plus_ms(notify.answer_ms);
        let limit = world::milliseconds(notify.answer_ms);
        let deadline = Instant::now() + limit;
        let host = topic.host().to_owned();
        self.run.state = LoopState::Running;
        (self.run.outcome, self.run.reason, self.run.ended_at) = (None, None, None);
        self.run.session.waiting = Some(Waiting { what: WaitingFor::Answer(until), since });
        self.progress.set_asking(true);
        self.save()?;
        let asked = ended.reason.as_deref().unwrap_or_default();
        self.screen.say(&format!("Ralph: question: {asked}"));
        let reason = format!("waiting for your answer from {host}");
        let span = |span: Duration| time::span(i64::try_from(span.as_millis()).unwrap_or(i64::MAX));
        self.screen.say(&format!(
            "Ralph: {reason}, or `ralph answer TEXT`, for {}; Ctrl-C ends the run",
            span(limit)
        ));
        self.emit(EventKind::Waiting(event::WaitEvent {
            what: "answer".into(),
            reason: event::text(asked),
            error: None,
            until: Some(until),
            seconds: Some(limit.as_secs()),
        }));
        let watch = self.watch_answers(ended, open, topic)?;
        let screen = &mut self.screen;
        let (mut told, mut was_edited) = (String::new(), false);
        let interruption = loop {
            let interruption = self.inbox.wait(deadline, |left| {
                screen.live(&format!("Ralph: {reason}; {} left", span(left)));
                let (trouble, is_edited) = watch.seen();
                if is_edited && !std::mem::replace(&mut was_edited, true) {
                    screen.warn(
                        "an answer in the question's file is ignored while the run waits: \
                         use `ralph answer --replace TEXT`",
                    );
                }
                if !trouble.is_empty() && trouble != told {
                    screen.warn(&format!("could not read the answers at {host}: {trouble}; still trying"));
                    told = trouble;
                }
            });
            // Enter is no answer.
            if interruption != Some(Interruption::Key) {
                break interruption;
            }
            screen.entered();
        };
        self.progress.set_asking(false);
        match interruption {
            Some(Interruption::Answered) => Ok(watch.answer()),
            // Ctrl-C ends the wait, and the run as it would have ended without one.
            Some(Interruption::Signal(_)) | Some(Interruption::Key) | None => Ok(None),
            Some(stopped) => self.is_ended_by(stopped).map(|_| None),
        }
    }

    /// Watches the topic and the question's file for an answer. Anyone who can write the project can write that file, so only
    /// what the user gave with `ralph answer` counts in it.
    fn watch_answers(&self, ended: &ArmedLoop, open: OpenReply, mut topic: Topic) -> Result<AnswerWatch> {
        let watch = AnswerWatch::default();
        let heard = Arc::downgrade(&watch.0);
        let (world, project, ended) = (self.world.clone(), self.project.clone(), ended.clone());
        let sender = self.inbox.sender.clone();
        Builder::new().spawn(move || {
            let mut next = Instant::now();
            while let Some(heard) = heard.upgrade() {
                let mut found = None;
                let present = question::of_loop(&project, &ended).ok().flatten();
                let written = present.as_ref().filter(|question| !question.answer.is_empty());
                let given = written.filter(|question| {
                    answers::is_given(&world, &project, &question.whole()).is_ok_and(|is_given| is_given)
                });
                lock(&heard).is_edited |= written.is_some() && given.is_none();
                if let Some(question) = given {
                    found = Some((question.clone(), "terminal".to_owned()));
                } else if Instant::now() >= next {
                    let looked = topic.poll();
                    next = Instant::now() + topic.pause();
                    let trouble = looked.as_ref().err().cloned().unwrap_or_default();
                    lock(&heard).trouble = trouble;
                    if let (Ok(Some(text)), Some(question)) = (looked, present)
                        && reply::take(&world, &project, SESSION, &open)
                    {
                        let answered = question::answer(&project, &question, &text);
                        found = answered.ok().map(|question| (question, topic.host().to_owned()));
                    }
                }
                if found.is_some() {
                    lock(&heard).answer = found;
                    let _ = sender.send(Message::Answered);
                    return;
                }
                drop(heard);
                std::thread::sleep(POLL);
            }
        })?;
        Ok(watch)
    }

    /// Continues the run with the answer, as `ralph run` does after `ralph answer`.
    fn continue_with(&mut self, ended: ArmedLoop, question: &Question, from: &str) -> Result<()> {
        let world = self.world.later();
        reply::close(&world, self.project, SESSION);
        self.asked = false;
        self.screen.note(&format!("answer from {from}: \"{}\"", clean::excerpt(&question.answer, 160)));
        self.emit(EventKind::Answered(Answered {
            question: event::text(question.asked()),
            answer: event::text(&question.answer),
            from: from.to_owned(),
        }));
        self.run = ended;
        self.run.resume(world.now);
        self.run.timing.slept_mark_ms = world.slept_ms;
        answers::hand_over(&world, self.project, &mut self.run, Some(question))?;
        if let Err(error) = answers::save(&world, self.project, &self.run.pending.answers) {
            self.screen.warn(&format!("could not save the answers for a later run: {error:#}"));
        }
        if let Err(error) = question::file_away(self.project, question, world.now) {
            self.screen
                .warn(&format!("could not move {} to ralph/answered: {error:#}", question.path.display()));
        }
        self.save()
    }
}

/// What the watch for an answer has found.
#[derive(Clone, Default)]
struct AnswerWatch(Arc<Mutex<Found>>);

#[derive(Default)]
struct Found {
    answer: Option<(Question, String)>,
    trouble: String,
    /// An answer that the user did not give was in the question's file.
    is_edited: bool,
}

fn lock(found: &Mutex<Found>) -> MutexGuard<'_, Found> {
    found.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AnswerWatch {
    fn answer(&self) -> Option<(Question, String)> {
        lock(&self.0).answer.take()
    }

    /// Returns what is wrong with the topic, and whether the question's file was edited.
    fn seen(&self) -> (String, bool) {
        let found = lock(&self.0);
        (found.trouble.clone(), found.is_edited)
    }
}
