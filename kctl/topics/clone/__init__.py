"""Clone a topic, optionally with its records."""
