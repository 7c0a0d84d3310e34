"""kctl quorum."""
