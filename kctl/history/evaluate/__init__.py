"""The rules of lag and growth over columns of numpy, with and without Spark."""
