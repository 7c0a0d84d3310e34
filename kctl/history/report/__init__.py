"""A report over a span of time, as a plain value, and as one self-contained page."""
