"""Carry out plans, with a journal: checked, throttled, paused, resumed, cancelled and verified."""
