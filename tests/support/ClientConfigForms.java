import java.io.ByteArrayInputStream;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;

/** What Java reads in forms: each line of stdin is a kind (jaas, properties) and bytes in base64; so is the answer. */
public class ClientConfigForms {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        StringBuilder out = new StringBuilder();
        for (String line; (line = lines.readLine()) != null; ) {
            String[] parts = line.split(" ", -1);
            byte[] data = Base64.getDecoder().decode(parts[1]);
            try {
                out.append(parts[0].equals("jaas") ? jaas(new String(data, StandardCharsets.UTF_8)) : properties(data));
            } catch (Exception e) {
                out.append("refused");
            }
            out.append('\n');
        }
        System.out.print(out);
    }

    private static String jaas(String text) {
        JaasContext context = JaasContext.loadClientContext(Map.of("sasl.jaas.config", new Password(text)));
        AppConfigurationEntry entry = context.configurationEntries().get(0);
        String flag = entry.getControlFlag().toString().replaceAll(".*: ", "");
        StringBuilder said = new StringBuilder(coded(entry.getLoginModuleName()) + " " + coded(flag));
        Map<String, Object> options = new TreeMap<>();
        entry.getOptions().forEach((key, value) -> options.put(key == null ? "" : key, value));
        options.forEach((key, value) -> said.append(" ").append(coded(key)).append(" ").append(coded((String) value)));
        return said.toString();
    }

    private static String properties(byte[] data) throws Exception {
        Properties found = new Properties();
        found.load(new ByteArrayInputStream(data));
        StringBuilder said = new StringBuilder("ok");
        new TreeMap<>(found).forEach(
            (key, value) -> said.append(" ").append(coded((String) key)).append(" ").append(coded((String) value)));
        return said.toString();
    }

    /** UTF-16, so that lone surrogates survive. */
    private static String coded(String text) {
        return "=" + Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_16BE));
    }
}
