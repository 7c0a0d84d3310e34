"""Brokers as rows: what they hold, and their log levels."""
