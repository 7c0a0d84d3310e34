"""Plan and run reassignments of partitions."""
