"""Playbooks: the format, lint, and runs that can be resumed."""
