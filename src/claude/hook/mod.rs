pub mod answer;
pub mod input;
