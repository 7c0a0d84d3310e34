"""What all layers use: units, text, times, deadlines, files, journals, secrets."""
