"""PySpark jobs and data sources. Imported as kctl.spark; nothing here is imported by the library."""
