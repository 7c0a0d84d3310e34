"""Contents of log files: for people and programs, or as Kafka's DumpLogSegments prints them."""
