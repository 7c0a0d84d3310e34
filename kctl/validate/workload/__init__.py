"""The producer and the consumer of a validation, and the journals that they write."""
