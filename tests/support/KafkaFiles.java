import java.lang.reflect.*;
import java.nio.file.*;
import java.util.*;

/** What Kafka's tools read of their JSON files: KIND TAB URL-encoded text on stdin, and "=value" or "!why" beside it. */
public class KafkaFiles {
    static Object call(String cls, String name, String text) throws Exception {
        Method m = Class.forName(cls).getDeclaredMethod(name, String.class);
        m.setAccessible(true);
        return m.invoke(null, text);
    }
    public static void main(String[] args) throws Exception {
        Scanner in = new Scanner(System.in, "UTF-8");
        while (in.hasNextLine()) {
            String[] parts = in.nextLine().split("\t", -1);
            byte[] data = new java.io.ByteArrayOutputStream() {{ writeBytes(unescape(parts[1])); }}.toByteArray();
            Path file = Files.createTempFile("kf", ".json");
            Files.write(file, data);
            String shown;
            try {
                Object value;
                switch (parts[0]) {
                    case "delete": value = call("org.apache.kafka.tools.DeleteRecordsCommand", "parseOffsetJsonStringWithoutDedup", org.apache.kafka.common.utils.Utils.readFileAsString(file.toString())); break;
                    case "reassign": value = call("org.apache.kafka.tools.reassign.ReassignPartitionsCommand", "parseExecuteAssignmentArgs", org.apache.kafka.common.utils.Utils.readFileAsString(file.toString())); break;
                    case "topics": value = call("org.apache.kafka.tools.reassign.ReassignPartitionsCommand", "parseTopicsData", org.apache.kafka.common.utils.Utils.readFileAsString(file.toString())); break;
                    default: value = call("org.apache.kafka.tools.LeaderElectionCommand", "parseReplicaElectionData", file.toString());
                }
                shown = "=" + value;
            } catch (InvocationTargetException e) {
                Throwable t = e.getCause();
                shown = "!" + t.getClass().getSimpleName() + ": " + t.getMessage();
            }
            Files.delete(file);
            System.out.println(parts[0] + "\t" + parts[1] + "\t" + shown.replace("\n", " ").replace("\t", " "));
        }
    }
    static byte[] unescape(String s) {
        java.io.ByteArrayOutputStream out = new java.io.ByteArrayOutputStream();
        for (int i = 0; i < s.length(); i++) {
            char c = s.charAt(i);
            if (c == '%') { out.write(Integer.parseInt(s.substring(i + 1, i + 3), 16)); i += 2; } else out.write(c);
        }
        return out.toByteArray();
    }
}
