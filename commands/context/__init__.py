"""kctl context: named clusters."""
