"""Transactions as coordinators see them, producers as partitions see them, and hanging transactions."""
