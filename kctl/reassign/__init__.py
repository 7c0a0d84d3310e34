"""Reassignment of partitions: planned, and carried out."""
