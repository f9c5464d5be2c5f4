//! `knee shell`: any command behind the link.
