"""kctl spark: analyses that run on PySpark."""
