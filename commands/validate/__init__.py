"""kctl validate: prove the reliability of a cluster."""
