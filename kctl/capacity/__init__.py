"""Calculate the partitions and brokers that a load needs, and show the arithmetic."""
