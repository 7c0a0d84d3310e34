"""What can be wrong with log files, and indexes built anew."""
