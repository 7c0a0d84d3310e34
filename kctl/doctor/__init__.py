"""kctl doctor: rules by subject, the facts that the rules examine, and the report."""
