"""Decoders of keys and values: Avro, Protobuf, JSON Schema, and schema registries."""
