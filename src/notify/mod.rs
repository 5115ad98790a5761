//! Ralph's only network connections: it sends notifications to the user's service, and takes answers from there. The
//! hooks start a process for that and have none of it in their own programs.

pub mod answers;
pub mod deliver;
pub mod http;
