pub mod clean;
pub mod nearest;
