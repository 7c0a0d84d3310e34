"""Client properties as Kafka's tools, librdkafka and Spring write them: names, references to secrets, logins, stores."""
