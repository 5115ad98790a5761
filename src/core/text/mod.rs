pub mod clean;
