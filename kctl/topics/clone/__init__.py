"""Cloning a topic, optionally with its records."""
