"""kctl demo: a short tour on a cluster of its own."""
