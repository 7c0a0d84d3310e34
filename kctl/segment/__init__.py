"""Kafka's log files, read without a broker."""
