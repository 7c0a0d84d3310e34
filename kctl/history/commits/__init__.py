"""Commit times, read from the log of __consumer_offsets."""
