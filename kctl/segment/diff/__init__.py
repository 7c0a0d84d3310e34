"""Compare two replicas of a partition."""
