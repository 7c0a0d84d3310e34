"""Read-only access to ZooKeeper."""
