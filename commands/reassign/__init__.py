"""kctl topic reassign: plan, apply, pause, resume, cancel, roll back and verify partition moves."""
