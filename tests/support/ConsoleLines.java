import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;

import org.apache.kafka.tools.api.RecordReader;

/**
 * Reads inputs as kafka-console-producer does. A line of stdin is "KEY=VALUE, unit separator, KEY=VALUE, tab, input in
 * base64"; a line of stdout is the records with blanks between them (key|value|name:value,...; base64, ~ for null),
 * then "!message" for what it threw.
 */
public class ConsoleLines {
    public static void main(String[] args) throws Exception {
        var cases = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = cases.readLine(); line != null; line = cases.readLine()) {
            var parts = line.split("\t", -1);
            var options = new HashMap<String, Object>();
            options.put("topic", "t");
            for (String option : parts[0].split("\u001f")) {
                if (!option.isEmpty()) {
                    var pair = option.split("=", 2);
                    options.put(pair[0], new String(Base64.getDecoder().decode(pair[1]), StandardCharsets.UTF_8));
                }
            }
            System.out.println(String.join(" ", read(args[0], options, Base64.getDecoder().decode(parts[1]))));
        }
    }

    private static List<String> read(String reader, HashMap<String, Object> options, byte[] input) throws Exception {
        var shown = new ArrayList<String>();
        try {
            var lines = (RecordReader) Class.forName(reader).getDeclaredConstructor().newInstance();
            lines.configure(options);
            var records = lines.readRecords(new ByteArrayInputStream(input));
            while (records.hasNext()) {
                var record = records.next();
                var headers = new ArrayList<String>();
                record.headers().forEach(header -> headers.add(
                    text(header.key().getBytes(StandardCharsets.UTF_8)) + ":" + text(header.value())));
                shown.add(text(record.key()) + "|" + text(record.value()) + "|" + String.join(",", headers));
            }
        } catch (Exception error) {
            shown.add("!" + text(String.valueOf(error.getMessage()).getBytes(StandardCharsets.UTF_8)));
        }
        return shown;
    }

    private static String text(byte[] data) {
        return data == null ? "~" : Base64.getEncoder().encodeToString(data);
    }
}
