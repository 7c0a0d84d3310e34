"""The verdict of a validation, its figures, plots and report."""
