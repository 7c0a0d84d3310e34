"""Carry out plans, with a journal: check, throttle, pause, resume, cancel and verify."""
