import java.io.PrintStream;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;

/**
 * The settings of this release's brokers: type, default, range and allowed values of each. Makes
 * kctl/deploy/config/broker_settings.json (3.9.2) and broker_settings_4.4.json:
 *
 * java -cp 'kafka-4.4.0/libs/*' tests/support/BrokerSettings.java 4.4.0 \
 *     > kctl/deploy/config/broker_settings_4.4.json
 */
public class BrokerSettings {
    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err); // where log4j writes
        Map<String, ConfigDef.ConfigKey> keys = new TreeMap<>(kafka.server.KafkaConfig.configDef().configKeys());
        List<String> lines = new ArrayList<>();
        for (ConfigDef.ConfigKey key : keys.values()) {
            lines.add("  " + quoted(key.name) + ": {" + String.join(", ", parts(key)) + "}");
        }
        out.println("{\n \"version\": " + quoted(arguments[0]) + ",\n \"settings\": {");
        out.println(String.join(",\n", lines) + "\n }\n}");
    }

    private static List<String> parts(ConfigDef.ConfigKey key) throws Exception {
        List<String> parts = new ArrayList<>();
        parts.add("\"type\": " + quoted(key.type.name().toLowerCase(Locale.ROOT)));
        if (key.defaultValue != ConfigDef.NO_DEFAULT_VALUE && key.defaultValue != null) {
            parts.add("\"default\": " + quoted(ConfigDef.convertToString(key.defaultValue, key.type)));
        }
        if (key.validator != null) {
            addRange(parts, key.validator);
            addValues(parts, key.validator);
        }
        return parts;
    }

    private static void addRange(List<String> parts, Object validator) throws Exception {
        if (validator instanceof ConfigDef.Range) {
            for (String bound : List.of("min", "max")) {
                Object value = field(validator, bound);
                if (value != null) {
                    parts.add("\"" + bound + "\": " + value);
                }
            }
        }
    }

    private static void addValues(List<String> parts, Object validator) throws Exception {
        Object values = null;
        if (validator instanceof ConfigDef.ValidList) {
            values = field(field(validator, "validString"), "validStrings");
        } else if (validator instanceof ConfigDef.ValidString
                || validator instanceof ConfigDef.CaseInsensitiveValidString) {
            values = field(validator, "validStrings");
        }
        if (values instanceof Iterable<?> texts) {
            List<String> quotedTexts = new ArrayList<>();
            texts.forEach(text -> quotedTexts.add(quoted(String.valueOf(text))));
            if (!quotedTexts.isEmpty()) {
                parts.add("\"values\": [" + String.join(", ", quotedTexts) + "]");
            }
            if (validator instanceof ConfigDef.CaseInsensitiveValidString) {
                parts.add("\"ignore_case\": true");
            }
        }
    }

    private static Object field(Object owner, String name) throws Exception {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(owner);
    }

    private static String quoted(String text) {
        return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + "\"";
    }
}
