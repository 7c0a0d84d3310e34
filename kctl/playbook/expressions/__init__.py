"""Expressions of playbooks: parsing, checks and evaluation."""
