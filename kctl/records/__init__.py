"""Consume and produce records."""
