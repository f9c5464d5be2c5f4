"""How far what tcpknee says holds: published claims, the simulator beside this host's TCP stack, and beside stored
results of other kernels."""
