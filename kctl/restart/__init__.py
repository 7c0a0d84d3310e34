"""Rolling restarts, and the control of broker processes: stop, start, kill, pause."""
