"""Running playbooks, with a journal from which a run continues."""
