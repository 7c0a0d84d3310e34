"""ZooKeeper, read only: its nodes, what Kafka keeps in them, and the servers of an ensemble."""
