//! All tests of this folder in one program: linked once, and side by side.

mod common;

mod algorithm_state;
mod analytic;
mod applications;
mod bbr1;
mod bbr2;
mod bbr3;
mod bbr3_paths;
mod cake;
mod connections;
mod delay_based;
mod ecn;
mod golden;
mod golden_drawn;
mod golden_tables;
mod hops;
mod known_commits;
mod limits;
mod machines;
mod noise;
mod paths;
mod policer;
mod polling;
mod properties;
mod queues;
mod recovery;
mod response;
mod transport;
mod ware;
mod web;
