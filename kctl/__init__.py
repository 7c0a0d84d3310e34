"""kctl: operations for Apache Kafka. The library: it prints nothing and asks nothing (docs/architecture.md)."""

# A constant: importlib.metadata would cost every start 60 ms.
__version__ = "1.0.0"
