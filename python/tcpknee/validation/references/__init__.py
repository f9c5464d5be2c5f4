"""How far the simulator is from results that were measured elsewhere, and the files that hold them."""
