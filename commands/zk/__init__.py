"""kctl zk: look into ZooKeeper."""
