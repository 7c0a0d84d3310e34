"""Contents of log files: for people and programs, and as Kafka's DumpLogSegments prints them."""
