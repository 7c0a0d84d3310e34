import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.config.ConfigTransformer;
import org.apache.kafka.common.config.provider.ConfigProvider;
import org.apache.kafka.common.config.provider.DirectoryConfigProvider;
import org.apache.kafka.common.config.provider.EnvVarConfigProvider;
import org.apache.kafka.common.config.provider.FileConfigProvider;

/** What Kafka's config providers make of a value: each line is the value, allowed.paths and allowlist.pattern in base64. */
public class ConfigProviderForms {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        StringBuilder out = new StringBuilder();
        for (String line; (line = lines.readLine()) != null; ) {
            String[] parts = line.split(" ", -1);
            out.append(answer(text(parts[0]), text(parts[1]), text(parts[2]))).append('\n');
        }
        System.out.print(out);
    }

    private static String answer(String value, String paths, String pattern) {
        try {
            Map<String, ConfigProvider> providers = new HashMap<>();
            providers.put("file", configured(new FileConfigProvider(), "allowed.paths", paths));
            providers.put("directory", configured(new DirectoryConfigProvider(), "allowed.paths", paths));
            providers.put("env", configured(new EnvVarConfigProvider(), "allowlist.pattern", pattern));
            String found = new ConfigTransformer(providers).transform(Map.of("k", value)).data().get("k");
            return "=" + Base64.getEncoder().encodeToString(found.getBytes(StandardCharsets.UTF_8));
        } catch (Exception e) {
            return "!" + e.getClass().getSimpleName();
        }
    }

    private static ConfigProvider configured(ConfigProvider provider, String name, String value) {
        provider.configure(value.isEmpty() ? Map.of() : Map.of(name, value));
        return provider;
    }

    private static String text(String coded) {
        return new String(Base64.getDecoder().decode(coded), StandardCharsets.UTF_8);
    }
}
