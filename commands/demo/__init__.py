"""kctl demo: a short tour on a temporary cluster."""
