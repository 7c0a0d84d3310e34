"""kctl consume: read records."""
