"""Carrying plans out, with a journal: checked, throttled, paused, resumed, cancelled and verified."""
