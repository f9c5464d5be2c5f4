//! How far the algorithms of `cc/` do what the kernel's own do. Only tests and `make replay` use it.

pub mod replay;
