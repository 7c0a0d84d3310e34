"""Configs of topics, brokers and groups: description, sources, changes and comparison."""
