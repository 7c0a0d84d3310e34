"""Commit times: from the log of __consumer_offsets."""
