"""Write records to topics, with a known outcome for each record."""
