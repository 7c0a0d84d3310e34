"""Hours and days of a store, rolled up, and trends of them."""
