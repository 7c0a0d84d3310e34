"""kctl transaction: list, describe and abort transactions."""
