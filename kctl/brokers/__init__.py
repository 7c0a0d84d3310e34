"""Brokers as rows, and their log levels."""
