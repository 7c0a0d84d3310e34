"""Client properties of Kafka's tools, librdkafka and Spring: names, references to secrets, logins and stores."""
