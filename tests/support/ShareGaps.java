import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;

/** Reads as a member of a share group, releases the first record and accepts the others: BOOTSTRAP GROUP TOPIC COUNT. */
public class ShareGaps {
    public static void main(String[] args) {
        var settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("group.id", args[1]);
        settings.put("share.acknowledgement.mode", "explicit");
        var deserializer = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
        settings.put("key.deserializer", deserializer);
        settings.put("value.deserializer", deserializer);
        int left = Integer.parseInt(args[3]);
        try (var consumer = new KafkaShareConsumer<byte[], byte[]>(settings)) {
            consumer.subscribe(List.of(args[2]));
            long end = System.currentTimeMillis() + 60_000;
            while (left > 0 && System.currentTimeMillis() < end) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                    var first = record.offset() == 0;
                    consumer.acknowledge(record, first ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
                    if (!first) {
                        System.out.println(record.offset());
                        left--;
                    }
                }
                consumer.commitSync();
            }
        }
    }
}
