//! What a key does: it changes what is shown, or asks for something to be done.

use super::footer::Banner;
use super::input::TextInput;
use super::runs::RunView;
use super::{Focus, InputMode, Monitor, TextPurpose};
use crate::core::record::LoopState;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::path::PathBuf;

/// What the command of the monitor has to do for a key.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyAction {
    Quit,
    /// Ctrl-Z.
    Suspend,
    /// Ctrl-L: something else wrote on the screen.
    Redraw,
    Act(RunRef, LoopAction),
}

/// The run that something is done to.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRef {
    pub run_id: String,
    pub session_id: String,
    pub project: PathBuf,
}

#[derive(Clone, Debug, PartialEq)]
pub enum LoopAction {
    Encourage(String),
    Forbid(String),
    Answer(String),
    Pause,
    Resume,
    Stop,
    Reset,
    OpenReport,
}

impl LoopAction {
    /// Returns the question before it is done.
    pub fn question(&self) -> &'static str {
        match self {
            LoopAction::Pause => "Pause this loop when its turn ends?",
            LoopAction::Resume => "Resume this loop?",
            LoopAction::Stop => "Stop this loop?",
            LoopAction::Reset => "Reset the circuit breaker of this loop?",
            LoopAction::Encourage(_)
            | LoopAction::Forbid(_)
            | LoopAction::Answer(_)
            | LoopAction::OpenReport => "Do it?",
        }
    }

    /// Returns what is said while it is done.
    pub fn doing(&self) -> &'static str {
        match self {
            LoopAction::Encourage(_) | LoopAction::Forbid(_) => "giving guidance…",
            LoopAction::Answer(_) => "answering…",
            LoopAction::Pause => "pausing…",
            LoopAction::Resume => "resuming…",
            LoopAction::Stop => "stopping…",
            LoopAction::Reset => "resetting…",
            LoopAction::OpenReport => "writing the report…",
        }
    }
}

impl Monitor {
    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Option<KeyAction> {
        // A terminal tells Esc and a letter that follow each other at once as Alt and the letter.
        if key.kind == KeyEventKind::Release || key.modifiers.contains(KeyModifiers::ALT) {
            return None;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return Some(KeyAction::Quit),
            KeyCode::Char('z') if control => return Some(KeyAction::Suspend),
            KeyCode::Char('l') if control => return Some(KeyAction::Redraw),
            _ => {}
        }
        // With Ctrl, a letter is another key: only a text and the pages have such.
        let is_text = matches!(self.mode, InputMode::Filter(_) | InputMode::Ask(..));
        if control && !is_text && matches!(key.code, KeyCode::Char(letter) if !"du".contains(letter)) {
            return None;
        }
        self.notice = None;
        match std::mem::take(&mut self.mode) {
            InputMode::Browse => self.browse(key, control),
            InputMode::Help => {
                self.scroll_help(key);
                None
            }
            InputMode::Log => {
                self.scroll_log(key);
                None
            }
            InputMode::Filter(input) => {
                self.type_filter(key, input);
                None
            }
            InputMode::Ask(wanted, input) => self.type_text(key, wanted, input),
            InputMode::Confirm(act) => match key.code {
                KeyCode::Char('y' | 'Y') => self.act(act),
                _ => {
                    self.notice = Some(Banner::info("nothing was done"));
                    None
                }
            },
        }
    }

    /// Takes a text that was pasted.
    pub fn paste(&mut self, pasted: &str) {
        match &mut self.mode {
            InputMode::Filter(input) => {
                input.insert(pasted);
                self.filter = input.text();
                self.keep_selection();
            }
            InputMode::Ask(_, input) => input.insert(pasted),
            _ => {}
        }
    }

    fn browse(&mut self, key: KeyEvent, control: bool) -> Option<KeyAction> {
        match key.code {
            KeyCode::Char('q') => return Some(KeyAction::Quit),
            KeyCode::Down | KeyCode::Char('j') => self.move_by(1),
            KeyCode::Up | KeyCode::Char('k') => self.move_by(-1),
            KeyCode::PageDown => self.move_by(self.page_step()),
            KeyCode::PageUp => self.move_by(-self.page_step()),
            KeyCode::Char('d') if control => self.move_by(self.page_step()),
            KeyCode::Char('u') if control => self.move_by(-self.page_step()),
            KeyCode::Home | KeyCode::Char('g') => self.move_by(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => self.move_by(isize::MAX),
            KeyCode::Tab | KeyCode::BackTab => {
                self.focus = if self.focus == Focus::List { Focus::Detail } else { Focus::List };
            }
            KeyCode::Enter | KeyCode::Right if self.selected().is_some() => self.focus = Focus::Detail,
            KeyCode::Left => self.focus = Focus::List,
            KeyCode::Esc if self.focus == Focus::Detail => {
                (self.focus, self.detail_scroll) = (Focus::List, 0);
            }
            KeyCode::Esc => {
                self.filter.clear();
                self.keep_selection();
            }
            KeyCode::Char('/') => {
                self.focus = Focus::List;
                self.mode = InputMode::Filter(TextInput::new(&self.filter));
            }
            KeyCode::Char('?') => self.mode = InputMode::Help,
            KeyCode::Char(letter) => return self.command(letter),
            _ => {}
        }
        None
    }

    /// Takes a key that is about the selected run.
    fn command(&mut self, letter: char) -> Option<KeyAction> {
        let Some(run) = self.selected() else {
            if "lefaprso".contains(letter) {
                self.notice = Some(Banner::info("no run is selected"));
            }
            return None;
        };
        let refused = match letter {
            'l' => {
                (self.mode, self.log_scroll) = (InputMode::Log, 0);
                return None;
            }
            'o' => return self.act(LoopAction::OpenReport),
            'e' | 'f' if !run.is_alive() => "this run has ended: guidance needs a running loop",
            'e' => return self.ask(TextPurpose::Encourage),
            'f' => return self.ask(TextPurpose::Forbid),
            'a' if run.question.is_none() => "this run has no open question",
            'a' => return self.ask(TextPurpose::Answer),
            'p' | 's' if !run.is_alive() => "this run has ended",
            'p' if run.state() == Some(LoopState::Paused) => return self.confirm(LoopAction::Resume),
            'p' => return self.confirm(LoopAction::Pause),
            's' => return self.confirm(LoopAction::Stop),
            'r' if run.shown.is_none() => "no circuit breaker for this run",
            'r' => return self.confirm(LoopAction::Reset),
            _ => return None,
        };
        self.notice = Some(Banner::info(refused));
        None
    }

    fn ask(&mut self, wanted: TextPurpose) -> Option<KeyAction> {
        self.mode = InputMode::Ask(wanted, TextInput::default());
        None
    }

    fn confirm(&mut self, act: LoopAction) -> Option<KeyAction> {
        self.mode = InputMode::Confirm(act);
        None
    }

    fn act(&mut self, act: LoopAction) -> Option<KeyAction> {
        let target = self.selected().map(RunView::target)?;
        self.notice = Some(Banner::info(act.doing()));
        Some(KeyAction::Act(target, act))
    }

    fn type_filter(&mut self, key: KeyEvent, mut input: TextInput) {
        match key.code {
            KeyCode::Enter => {}
            KeyCode::Esc => self.filter.clear(),
            _ => {
                input.edit(key);
                self.filter = input.text();
                self.mode = InputMode::Filter(input);
            }
        }
        self.keep_selection();
    }

    fn type_text(&mut self, key: KeyEvent, wanted: TextPurpose, mut input: TextInput) -> Option<KeyAction> {
        let text = input.text().trim().to_owned();
        match key.code {
            KeyCode::Esc => return None,
            KeyCode::Enter if text.is_empty() => return None,
            KeyCode::Enter => {
                return self.act(match wanted {
                    TextPurpose::Encourage => LoopAction::Encourage(text),
                    TextPurpose::Forbid => LoopAction::Forbid(text),
                    TextPurpose::Answer => LoopAction::Answer(text),
                });
            }
            _ => _ = input.edit(key),
        }
        self.mode = InputMode::Ask(wanted, input);
        None
    }

    fn scroll_log(&mut self, key: KeyEvent) {
        let (page, max) = (self.page.max(1), self.max_scroll);
        let up = |by: usize, scroll: usize| scroll.saturating_add(by).min(max);
        self.log_scroll = match key.code {
            KeyCode::Esc | KeyCode::Char('q' | 'l') | KeyCode::Enter => return,
            KeyCode::Up | KeyCode::Char('k') => up(1, self.log_scroll),
            KeyCode::Down | KeyCode::Char('j') => self.log_scroll.saturating_sub(1),
            KeyCode::PageUp => up(page, self.log_scroll),
            KeyCode::PageDown | KeyCode::Char(' ') => self.log_scroll.saturating_sub(page),
            KeyCode::Home | KeyCode::Char('g') => max,
            KeyCode::End | KeyCode::Char('G') => 0,
            _ => self.log_scroll,
        };
        self.mode = InputMode::Log;
    }

    fn scroll_help(&mut self, key: KeyEvent) {
        let page = self.page.max(1);
        self.help_scroll = match key.code {
            KeyCode::Esc | KeyCode::Char('q' | '?') | KeyCode::Enter => {
                self.help_scroll = 0;
                return;
            }
            KeyCode::Down | KeyCode::Char('j') => self.help_scroll + 1,
            KeyCode::Up | KeyCode::Char('k') => self.help_scroll.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.help_scroll + page,
            KeyCode::PageUp => self.help_scroll.saturating_sub(page),
            _ => self.help_scroll,
        };
        self.help_scroll = self.help_scroll.min(self.max_scroll);
        self.mode = InputMode::Help;
    }

    fn page_step(&self) -> isize {
        let step = if self.focus == Focus::Detail { self.page } else { self.list_room };
        isize::try_from(step.max(1)).unwrap_or(1)
    }

    /// Moves the selection, or scrolls the selected run while that has the focus.
    fn move_by(&mut self, by: isize) {
        if self.focus == Focus::Detail {
            self.detail_scroll = self.detail_scroll.saturating_add_signed(by).min(self.max_scroll);
            return;
        }
        let count = self.visible().len();
        let position = self.position().unwrap_or(0).saturating_add_signed(by);
        self.select(position.min(count.saturating_sub(1)));
    }

    /// Selects the first run if the filter hides the selected one.
    fn keep_selection(&mut self) {
        if self.position().is_none() {
            self.select(0);
        }
    }
}

impl RunView {
    pub fn target(&self) -> RunRef {
        RunRef {
            run_id: self.run_id.clone(),
            session_id: self.session_id.clone(),
            project: self.project.clone(),
        }
    }
}
