"""What is wrong with a host, what it costs, and the fix, with a way back."""
