"""What all tests share."""

import signal

# A job that was started in the background ignores SIGINT, and so would every command that the tests interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
