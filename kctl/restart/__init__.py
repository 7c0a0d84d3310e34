"""Rolling restarts, and the means to stop, start and break brokers."""
