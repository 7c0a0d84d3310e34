"""Configs of topics, brokers and groups: what they mean, where they are set, how they are changed and compared."""
