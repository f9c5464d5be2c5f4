"""How far the simulator is from real kernels: this host's own TCP stack, and stored results of others."""
