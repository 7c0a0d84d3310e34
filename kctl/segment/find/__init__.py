"""Find a record in a log by offset, timestamp or key."""
