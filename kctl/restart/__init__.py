"""Restarting brokers one after the other, and the means to stop, start and break one."""
