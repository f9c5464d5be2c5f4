"""What `knee watch` shows: samples of every socket, what changed between two of them, and the screen."""
