"""kctl group: consumer groups."""
