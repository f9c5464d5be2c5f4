//! Records what the kernel's own algorithms did, to replay it through ours.
