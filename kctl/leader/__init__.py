"""Leaders of partitions: how far they are from the preferred ones, and electing them."""
