"""kctl completion: shell completion."""
