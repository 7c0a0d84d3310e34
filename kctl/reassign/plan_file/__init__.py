"""Plan files: Kafka's reassignment JSON with the keys that kctl adds."""
