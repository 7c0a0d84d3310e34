"""kctl playbook: run scripted operations."""
