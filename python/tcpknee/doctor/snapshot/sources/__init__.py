"""Where a snapshot's tables come from: a file for each kind of source."""
