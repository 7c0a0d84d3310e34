"""kctl: operations for Apache Kafka. The library never prints or prompts (docs/architecture.md)."""

# A constant: importlib.metadata would add 60 ms to every start.
__version__ = "1.0.0"
