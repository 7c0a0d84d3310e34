"""Where a record is in a log: by offset, time or key."""
