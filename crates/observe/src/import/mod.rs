//! What other tools wrote, as tables: a file per tool.

pub mod ss;
mod ss_line;
mod ss_time;
