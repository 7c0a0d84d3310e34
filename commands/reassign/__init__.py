"""kctl topic reassign: plan, run, pause, resume, cancel and verify."""
