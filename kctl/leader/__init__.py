"""Leaders of partitions: status, elections, and balance."""
