//! `knee shell`: any command behind an emulated path.

mod porter;
mod relay;
