"""Set up clusters: Kafka's jars and a Java to run them, layouts, config files, processes, hosts, health."""
