"""The lag report: what is asked, what is read, and its rows."""
