"""The shipped playbooks, as package data."""
