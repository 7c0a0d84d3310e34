"""kctl broker: brokers, their log dirs, versions and loggers."""
