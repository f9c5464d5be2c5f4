//! All tests of this folder in one program: linked once, and side by side.

mod common;

mod bbr1;
mod bbr_rev;
mod bbr_versions;
mod bic;
mod cdg;
mod compound;
mod cubic;
mod cubic_preack;
mod dctcp;
mod file;
mod golden;
mod golden_drawn;
mod highspeed;
mod htcp;
mod hybla;
mod hystartpp;
mod illinois;
mod lp;
mod nv;
mod prague;
mod registry;
mod reno;
mod scalable;
mod total;
mod vegas;
mod veno;
mod westwood;
mod yeah;
