"""Kafka's jars and a Java for them: found, downloaded, checked, and made quick to start."""
