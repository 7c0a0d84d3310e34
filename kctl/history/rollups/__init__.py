"""Hourly and daily rollups of a store, and their trends."""
