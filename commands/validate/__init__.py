"""kctl validate: inject faults into a cluster, and verify its guarantees."""
