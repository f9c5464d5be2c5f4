"""How far the simulator is from this host's own TCP stack."""
