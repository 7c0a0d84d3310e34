"""Feature levels of a KRaft cluster (KIP-584, KIP-778, KIP-1022): read, plan a change, apply it."""
