"""Checks of log files, and rebuilt indexes."""
