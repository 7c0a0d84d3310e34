import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.admin.BrokerMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.tools.reassign.ReassignPartitionsCommand;

/**
 * What `kafka-reassign-partitions --generate` proposes for a cluster that a file describes: the tool's own method, on
 * the schema of `kctl cluster export`. Arguments: the file, the broker list (ids with commas), the replication factor
 * (0: as it is; the tool itself cannot change it), the file for the proposal. Prints how many replicas it would copy.
 */
public class GenerateAssignment {
    @SuppressWarnings("unchecked")
    public static void main(String[] args) throws Exception {
        JsonNode cluster = new ObjectMapper().readTree(new File(args[0]));
        Set<Integer> wanted = Arrays.stream(args[1].split(",")).map(Integer::valueOf).collect(Collectors.toSet());
        int factor = Integer.parseInt(args[2]);
        List<BrokerMetadata> brokers = new ArrayList<>();
        for (JsonNode broker : cluster.get("brokers")) {
            if (wanted.contains(broker.get("id").asInt())) {
                Optional<String> rack = Optional.ofNullable(broker.get("rack")).map(JsonNode::asText);
                brokers.add(new BrokerMetadata(broker.get("id").asInt(), rack));
            }
        }
        Map<TopicPartition, List<Integer>> current = new HashMap<>();
        for (JsonNode topic : cluster.get("topics")) {
            String name = topic.get("name").asText();
            for (JsonNode partition : topic.get("partitions")) {
                List<Integer> replicas = new ArrayList<>();
                partition.get("replicas").forEach(id -> replicas.add(id.asInt()));
                current.put(new TopicPartition(name, partition.get("partition").asInt()), replicas);
            }
        }
        // The method takes the factor from the length of the lists, and nothing else of them.
        Map<TopicPartition, List<Integer>> asked = new HashMap<>(current);
        if (factor > 0) {
            asked.replaceAll((partition, replicas) -> Collections.nCopies(factor, 0));
        }
        Method calculate =
            ReassignPartitionsCommand.class.getDeclaredMethod("calculateAssignment", Map.class, List.class);
        calculate.setAccessible(true);
        long start = System.nanoTime();
        Map<TopicPartition, List<Integer>> proposed =
            (Map<TopicPartition, List<Integer>>) calculate.invoke(null, asked, brokers);
        long tookMs = (System.nanoTime() - start) / 1_000_000;
        Method format =
            ReassignPartitionsCommand.class.getDeclaredMethod("formatAsReassignmentJson", Map.class, Map.class);
        format.setAccessible(true);
        Files.writeString(Path.of(args[3]), (String) format.invoke(null, proposed, Collections.emptyMap()));
        long moves = 0;
        for (Map.Entry<TopicPartition, List<Integer>> entry : proposed.entrySet()) {
            Set<Integer> added = new HashSet<>(entry.getValue());
            current.get(entry.getKey()).forEach(added::remove);
            moves += added.size();
        }
        System.out.println("{\"moves\": " + moves + ", \"algorithm_ms\": " + tookMs + "}");
    }
}
