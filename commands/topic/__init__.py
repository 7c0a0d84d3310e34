"""kctl topic: list, describe, create, alter, truncate, copy and delete."""
