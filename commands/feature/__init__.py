"""kctl feature."""
