//! All tests of this folder in one program: linked once, and side by side.

mod common;

mod axes;
mod cells;
mod gallery;
mod scenario;
mod scenario_malformed;
mod scenario_refusals;
mod seams;
