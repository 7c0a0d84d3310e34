"""kctl cluster: create, start, stop, inspect, break and restart clusters."""
