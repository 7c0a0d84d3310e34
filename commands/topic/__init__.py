"""kctl topic: list, describe, create, alter, truncate, clone and delete topics."""
