"""What was measured elsewhere, set beside a run: results of other tools, recordings and captures; and what the
simulator says of a path that was measured."""
