"""Lint playbooks."""
