"""What is wrong with a host: snapshots of hosts, the rules that judge them, and the fix, with a way back."""
