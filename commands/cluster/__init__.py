"""kctl cluster: set up, start, stop, look into, break and restart clusters."""
