import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

import org.apache.kafka.tools.consumer.group.ConsumerGroupCommand;

/** Runs kafka-consumer-groups for each line of stdin, arguments parted by tabs, in one JVM: its start costs most. */
public class ConsumerGroups {
    public static void main(String[] args) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ConsumerGroupCommand.main(line.split("\t"));
            System.out.print('\u001e');
            System.out.flush();
        }
    }
}
