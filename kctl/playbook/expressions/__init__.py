"""Expressions of playbooks: read, checked and evaluated."""
