"""Writing records to topics, and knowing at the end what became of each."""
