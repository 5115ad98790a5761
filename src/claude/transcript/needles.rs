//! Tells what an entry is by what it contains, for transcripts too long to be parsed as a whole.
//!
//! A quote inside a string is escaped, so none of these keys can be found in what the agent or a tool wrote. The words
//! of an interrupt can; the entry is parsed then, which tells.

use memchr::memmem::Finder;

pub struct Needles {
    interrupt: Finder<'static>,
    result: Finder<'static>,
    user: Finder<'static>,
    queue: Finder<'static>,
    cost: Finder<'static>,
}

impl Needles {
    pub fn new() -> Needles {
        Needles {
            interrupt: Finder::new("interrupted by user"),
            result: Finder::new("\"tool_use_id\":\""),
            user: Finder::new("\"type\":\"user\""),
            queue: Finder::new("\"type\":\"queue-operation\""),
            cost: Finder::new("\"type\":\"cost-state\""),
        }
    }

    /// Returns whether the entry is the result of a tool.
    pub fn is_result(&self, entry: &[u8]) -> bool {
        self.result.find(entry).is_some()
    }

    /// Returns whether the entry may decide something: all do but results of tools.
    pub fn decides(&self, entry: &[u8]) -> bool {
        !self.is_result(entry) || self.interrupt.find(entry).is_some()
    }

    /// Returns whether the entry is one of the user's: a prompt, an Esc or what waits in the queue, or a total.
    pub fn is_command(&self, entry: &[u8]) -> bool {
        let is_user = || self.user.find(entry).is_some() && self.decides(entry);
        is_user() || self.queue.find(entry).is_some() || self.cost.find(entry).is_some()
    }
}
