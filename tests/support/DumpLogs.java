import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;

/** Runs DumpLogSegments (of Kafka 4, or of earlier versions) many times in one JVM. Each line of the file: arguments, separated by tabs.
 *  Prints for each: the exception's text (empty for none), stdout and stderr, in base64, separated by tabs. */
public class DumpLogs {
    private static final ByteArrayOutputStream OUT = new ByteArrayOutputStream();
    private static final ByteArrayOutputStream ERR = new ByteArrayOutputStream();

    private static Method tool() throws ReflectiveOperationException {
        Class<?> found;
        try {
            found = Class.forName("org.apache.kafka.tools.DumpLogSegments");
        } catch (ClassNotFoundException exc) {
            found = Class.forName("kafka.tools.DumpLogSegments");
        }
        return found.getMethod("main", String[].class);
    }

    public static void main(String[] args) throws Exception {
        Method tool = tool();
        PrintStream stdout = System.out;
        System.setOut(new PrintStream(OUT, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(ERR, true, StandardCharsets.UTF_8));
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            OUT.reset();
            ERR.reset();
            String failed = "";
            try {
                tool.invoke(null, (Object) line.split("\t"));
            } catch (InvocationTargetException exc) {
                failed = exc.getCause().toString();
            }
            stdout.println(encoded(failed.getBytes(StandardCharsets.UTF_8)) + "\t" + encoded(OUT.toByteArray())
                + "\t" + encoded(ERR.toByteArray()));
        }
        stdout.flush();
        Runtime.getRuntime().halt(0);
    }

    private static String encoded(byte[] data) {
        return Base64.getEncoder().encodeToString(data);
    }
}
