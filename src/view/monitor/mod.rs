//! The monitor: what is on its screen, and what a key does. It draws what it is given and asks for what it wants done;
//! files, processes and the terminal belong to its command.

mod detail;
mod footer;
pub mod help;
mod input;
mod keys;
mod list;
mod log;
mod runs;
mod strip;
mod text;
mod theme;

pub use footer::Banner;
pub use keys::{KeyAction, LoopAction, RunRef};
pub use runs::{ProjectView, RunView};
pub use theme::{Theme, Tone};

use crate::core::event::agent_log::AgentLogEntry;
use crate::core::record::LoopState;
use crate::core::time::Stamp;
use crate::store::user::history;
use input::TextInput;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};

/// Below this a screen is too small to say anything useful.
pub const MIN_COLUMNS: u16 = 40;
pub const MIN_ROWS: u16 = 10;
/// From here on the list and the selected run are side by side.
const SIDE_BY_SIDE: u16 = 72;
/// Entries of the agent's account that are kept.
const MAX_ENTRIES: usize = 2000;

#[derive(Debug)]
pub struct Monitor {
    pub theme: Theme,
    pub now: Stamp,
    /// The project it is about; `None` for all of this user's.
    pub project: Option<PathBuf>,
    /// In the order of the list.
    pub runs: Vec<RunView>,
    pub projects: HashMap<PathBuf, ProjectView>,
    /// What the agent of the selected run said and did last.
    pub entries: VecDeque<AgentLogEntry>,
    pub notice: Option<Banner>,
    selected: Option<String>,
    focus: Focus,
    mode: InputMode,
    filter: String,
    /// The first row of the list that is on the screen.
    list_top: usize,
    /// How many rows the list had room for when it was last drawn.
    list_room: usize,
    detail_scroll: usize,
    help_scroll: usize,
    /// Lines above the end of the log.
    log_scroll: usize,
    /// How far what is on the screen can be scrolled, and how many rows a page has.
    max_scroll: usize,
    page: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Focus {
    #[default]
    List,
    Detail,
}

#[derive(Clone, Debug, Default, PartialEq)]
enum InputMode {
    #[default]
    Browse,
    Help,
    Log,
    /// The filter, while it is typed.
    Filter(TextInput),
    /// A text for this.
    Ask(TextPurpose, TextInput),
    /// An act that waits for `y`.
    Confirm(LoopAction),
}

/// What a text is typed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextPurpose {
    Encourage,
    Forbid,
    Answer,
}

impl Monitor {
    pub fn new(theme: Theme, project: Option<&Path>, now: Stamp) -> Monitor {
        Monitor {
            theme,
            now,
            project: project.map(Path::to_owned),
            runs: Vec::new(),
            projects: HashMap::new(),
            entries: VecDeque::new(),
            notice: None,
            selected: None,
            focus: Focus::List,
            mode: InputMode::Browse,
            filter: String::new(),
            list_top: 0,
            list_room: 0,
            detail_scroll: 0,
            help_scroll: 0,
            log_scroll: 0,
            max_scroll: 0,
            page: 1,
        }
    }

    /// Takes over the runs as they are now. The selection stays with its run.
    pub fn set_runs(&mut self, mut runs: Vec<RunView>) {
        runs.sort_by_key(|run| {
            let is_running = run.is_alive() && run.state() == Some(LoopState::Running);
            // Loops at work stay in place while their turns end.
            let at = if run.is_alive() { run.started_at } else { run.last_at() };
            (!is_running, !run.is_alive(), std::cmp::Reverse(at), run.run_id.clone())
        });
        let before = self.position();
        self.runs = runs;
        if self.position().is_none() {
            // The neighbour of a run that is gone.
            let visible = self.visible();
            let next = visible.get(before.unwrap_or(0)).or(visible.last());
            self.selected = next.map(|index| self.runs[*index].run_id.clone());
            self.changed_selection();
        }
    }

    /// Adds what the agent of the selected run said or did.
    pub fn add_entries(&mut self, entries: impl IntoIterator<Item = AgentLogEntry>) {
        self.entries.extend(entries);
        self.entries.drain(..self.entries.len().saturating_sub(MAX_ENTRIES));
    }

    pub fn selected(&self) -> Option<&RunView> {
        let id = self.selected.as_ref()?;
        self.runs.iter().find(|run| run.run_id == *id)
    }

    /// Returns the runs that are on the screen, the selected one first: what is not seen is not read.
    pub fn visible_run_ids(&self) -> impl Iterator<Item = &str> {
        let selected = self.selected.as_deref();
        let listed = self.visible().into_iter().skip(self.list_top).take(self.list_room.max(1));
        let listed = listed.map(|index| self.runs[index].run_id.as_str());
        selected.into_iter().chain(listed.filter(move |id| Some(*id) != selected))
    }

    /// Returns the runs that pass the filter, by their index.
    fn visible(&self) -> Vec<usize> {
        let words: Vec<String> = self.filter.split_whitespace().map(str::to_lowercase).collect();
        let matches = |run: &RunView| {
            let state = run.summary(self.now);
            let project = run.project.to_string_lossy();
            let text = format!("{} {} {project} {} {}", run.task, run.run_id, state.word, run.session_id);
            let text = text.to_lowercase();
            words.iter().all(|word| text.contains(word.as_str()))
        };
        (0..self.runs.len()).filter(|index| words.is_empty() || matches(&self.runs[*index])).collect()
    }

    /// Returns the place of the selected run among those that pass the filter.
    fn position(&self) -> Option<usize> {
        let id = self.selected.as_ref()?;
        self.visible().iter().position(|index| self.runs[*index].run_id == *id)
    }

    fn select(&mut self, position: usize) {
        let visible = self.visible();
        let index = visible.get(position).or(visible.last());
        let id = index.map(|index| self.runs[*index].run_id.clone());
        if id != self.selected {
            self.selected = id;
            self.changed_selection();
        }
    }

    fn changed_selection(&mut self) {
        self.entries.clear();
        (self.detail_scroll, self.log_scroll) = (0, 0);
    }

    /// Returns the newest ending of a run that has no events, for its detail.
    fn past_of<'a>(&self, run: &'a RunView) -> Option<&'a history::Run> {
        run.past.as_ref().filter(|_| run.timeline.is_none())
    }

    pub fn draw(&mut self, frame: &mut Frame) {
        let area = frame.area();
        if area.width < MIN_COLUMNS || area.height < MIN_ROWS {
            let text = format!("too small: {}×{}, needs {MIN_COLUMNS}×{MIN_ROWS}", area.width, area.height);
            let lines = text::wrap(&text, usize::from(area.width), usize::from(area.height));
            frame.render_widget(Paragraph::new(lines.into_iter().map(Line::from).collect::<Vec<_>>()), area);
            return;
        }
        let rows = self.footer_rows(usize::from(area.width));
        let [header, body, footer] =
            Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(rows)])
                .areas(area);
        self.draw_header(frame, header);
        match self.mode {
            InputMode::Help => self.draw_help(frame, body),
            InputMode::Log => self.draw_log(frame, body),
            _ => self.draw_body(frame, body),
        }
        self.draw_footer(frame, footer);
    }

    /// Draws lines from this one on, and notes how far they can be scrolled. More of them is shown by an arrow.
    fn draw_scrolled(&mut self, frame: &mut Frame, area: Rect, lines: Vec<Line>, from: usize) {
        let room = usize::from(area.height);
        (self.page, self.max_scroll) = (room, lines.len().saturating_sub(room));
        let from = from.min(self.max_scroll);
        let (above, below) = (from > 0, from + room < lines.len());
        let shown: Vec<Line> = lines.into_iter().skip(from).take(room).collect();
        frame.render_widget(Paragraph::new(shown), area);
        let x = area.right().saturating_sub(1);
        for (is_more, sign, y) in [(above, "↑", area.y), (below, "↓", area.bottom().saturating_sub(1))] {
            if is_more && area.width > 0 {
                let sign = Line::styled(sign, self.theme.style(Tone::Strong));
                frame.render_widget(Paragraph::new(sign), Rect { x, y, width: 1, height: 1 });
            }
        }
    }

    fn draw_body(&mut self, frame: &mut Frame, body: Rect) {
        if body.width < SIDE_BY_SIDE {
            match self.focus {
                Focus::List => self.draw_list(frame, body),
                Focus::Detail => self.draw_detail(frame, body),
            }
            return;
        }
        let wide = (body.width / 3).clamp(30, 52);
        let [list, line, detail] =
            Layout::horizontal([Constraint::Length(wide), Constraint::Length(1), Constraint::Min(1)])
                .areas(body);
        self.draw_list(frame, list);
        let bar = Line::styled("│", self.theme.style(Tone::Dim));
        frame.render_widget(Paragraph::new(vec![bar; usize::from(line.height)]), line);
        self.draw_detail(frame, detail);
    }
}
