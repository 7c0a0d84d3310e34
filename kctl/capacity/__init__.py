"""How many partitions and brokers a load needs, with the arithmetic that says so."""
