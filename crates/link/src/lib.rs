//! Kneepoint's user-space link: between two TUN devices it drives the queues,
//! losses and delays of `knee-model` with the real clock, and measures how well
//! it does.
