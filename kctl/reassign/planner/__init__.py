"""Compute the smallest plan from a cluster's state and goals. Pure."""
