"""When offsets were committed: from the log of __consumer_offsets."""
