"""kctl zk: inspect ZooKeeper."""
