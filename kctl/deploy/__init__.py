"""Setting up a cluster: Kafka's jars and a Java to run them, layouts → config files, processes, hosts, health."""
