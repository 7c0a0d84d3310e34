"""The formats: batches, records, compression, indexes, snapshots, checkpoints, Kafka's own messages."""
