"""kctl leader: status, elections and balance."""
