"""kctl completion: what a shell proposes."""
