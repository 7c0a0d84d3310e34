"""Run playbooks, with a journal from which a run can be resumed."""
