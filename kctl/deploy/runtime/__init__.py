"""Kafka's jars and a Java to run them: found, downloaded, verified, and made fast to start."""
