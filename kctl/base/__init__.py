"""The foundation of all layers: units, text, times, deadlines, files, journals, secrets."""
