"""Two replicas of a partition, compared."""
