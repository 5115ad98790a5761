pub mod answer;
pub mod failure;
pub mod input;
pub mod module;
