import java.util.*;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.storage.internals.log.LogConfig;

/** How Kafka reads configs: TYPE TAB URL-encoded text on stdin, and "=shown" or "!" beside it; with "topics" the topic configs. */
public class ConfigForms {
    public static void main(String[] args) throws Exception {
        if (args.length > 0 && args[0].equals("topics")) { topics(); return; }
        Scanner in = new Scanner(System.in, "UTF-8");
        while (in.hasNextLine()) {
            String[] parts = in.nextLine().split("\t", -1);
            String text = java.net.URLDecoder.decode(parts[1], "UTF-8");
            Type type = Type.valueOf(parts[0].toUpperCase());
            String shown;
            try {
                Object value = ConfigDef.parseType("x", text, type);
                shown = "=" + java.net.URLEncoder.encode(String.valueOf(ConfigDef.convertToString(value, type)), "UTF-8");
            } catch (Exception e) {
                shown = "!";
            }
            System.out.println(parts[0] + "\t" + parts[1] + "\t" + shown);
        }
    }
    static void topics() throws Exception {
        Map<String, ConfigDef.ConfigKey> keys = new TreeMap<>(LogConfig.configDefCopy().configKeys());
        for (ConfigDef.ConfigKey key : keys.values())
            System.out.println(key.name + "\t" + key.type + "\t" + key.validator);
    }
}
