"""kctl produce: write records."""
