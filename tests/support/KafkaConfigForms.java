import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Properties;

/**
 * Which settings a broker of this release would start with. Reads lines of KEY=VALUE fields that tabs separate, and
 * prints "ok" or the reason for each. Made tests/data/listener_forms.tsv:
 *
 * java -cp 'kafka-3.9.2/libs/*' tests/support/KafkaConfigForms.java
 */
public class KafkaConfigForms {
    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err); // where log4j writes
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Properties settings = new Properties();
            for (String field : line.split("\t")) {
                int equals = field.indexOf('=');
                settings.put(field.substring(0, equals), field.substring(equals + 1));
            }
            String result = "ok";
            try {
                kafka.server.KafkaConfig.fromProps(settings, false);
            } catch (Throwable problem) {
                result = String.valueOf(problem.getMessage()).replace('\n', ' ');
            }
            out.println(result);
        }
    }
}
