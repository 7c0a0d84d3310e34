"""kctl validate: proof of reliability."""
