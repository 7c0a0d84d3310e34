"""What all commands share: options, tables and other outputs, questions, progress."""
