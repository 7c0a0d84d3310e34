"""Playbooks: what they are, what is wrong with them, and running them so that a run can be taken up again."""
