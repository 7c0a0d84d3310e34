"""Brokers and controllers: what they are, what they can do, what they hold."""
