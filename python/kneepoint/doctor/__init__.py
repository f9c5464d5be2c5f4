"""What is wrong with a host: snapshots of hosts, and the rules that judge them."""
