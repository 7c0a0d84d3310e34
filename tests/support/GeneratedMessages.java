import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.jar.JarFile;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/** Prints messages of Kafka's generated classes in many variants, one a line, separated by tabs: class, version, base64.
 *  Arguments: how many variants of each version; jars whose classes in packages named "generated" or "metadata" count. */
public class GeneratedMessages {
    private static final String[] TEXTS = {"", "a", "orders", "naïve ☃ \"q\"\n", "x".repeat(200)};
    private static final Random RANDOM = new Random(17);

    public static void main(String[] args) throws Exception {
        int variants = Integer.parseInt(args[0]);
        Set<String> names = new TreeSet<>();
        for (int i = 1; i < args.length; i++) {
            try (JarFile jar = new JarFile(args[i])) {
                jar.stream().map(entry -> entry.getName())
                    .filter(name -> name.matches(".*/(generated|metadata)/\\w+(Key|Value|Record)\\.class"))
                    .forEach(name -> names.add(name.replace('/', '.').replace(".class", "")));
            }
        }
        for (String name : names) {
            Class<?> type = Class.forName(name);
            if (Message.class.isAssignableFrom(type) && !Modifier.isAbstract(type.getModifiers())) {
                print(type, variants);
            }
        }
    }

    private static void print(Class<?> type, int variants) throws Exception {
        Message empty = (Message) type.getDeclaredConstructor().newInstance();
        for (short version = empty.lowestSupportedVersion(); version <= empty.highestSupportedVersion(); version++) {
            Set<String> found = new LinkedHashSet<>();
            for (int attempt = 0; attempt < 400 && found.size() < variants; attempt++) {
                String text = written((Message) made(type, attempt % 5 / 4.0), version);
                if (text != null) {
                    found.add(text);
                }
            }
            for (String text : found) {
                System.out.println(type.getSimpleName() + "\t" + version + "\t" + text);
            }
        }
    }

    /** Null when this version cannot hold the values. */
    private static String written(Message message, short version) {
        try {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(buffer), cache, version);
            return Base64.getEncoder().encodeToString(buffer.array());
        } catch (RuntimeException exc) {
            return null;
        }
    }

    /** A message or a struct of one; share: of the fields that are set. */
    private static Object made(Class<?> type, double share) throws Exception {
        var constructor = type.getDeclaredConstructor();
        constructor.setAccessible(true);
        Object made = constructor.newInstance();
        for (Field field : type.getDeclaredFields()) {
            boolean plain = Modifier.isStatic(field.getModifiers()) || field.getName().startsWith("_")
                || field.getName().equals("next") || field.getName().equals("prev");
            if (!plain && RANDOM.nextDouble() < share) {
                field.setAccessible(true);
                field.set(made, value(field, share));
            }
        }
        return made;
    }

    private static Object value(Field field, double share) throws Exception {
        Class<?> type = field.getType();
        if (!type.isPrimitive() && RANDOM.nextInt(4) == 0) {
            return null;
        }
        if (Collection.class.isAssignableFrom(type)) {
            boolean list = type == List.class;
            var generic = list ? field.getGenericType() : type.getGenericSuperclass();
            Class<?> element = (Class<?>) ((ParameterizedType) generic).getActualTypeArguments()[0];
            @SuppressWarnings("unchecked")
            Collection<Object> values = list ? new ArrayList<>()
                : (Collection<Object>) type.getDeclaredConstructor(int.class).newInstance(4);
            for (int count = RANDOM.nextInt(3); count > 0; count--) {
                values.add(single(element, share));
            }
            return values;
        }
        return single(type, share);
    }

    private static Object single(Class<?> type, double share) throws Exception {
        long number = RANDOM.nextInt(3) == 0 ? RANDOM.nextLong() : RANDOM.nextInt(9) - 1;
        if (type == byte.class || type == Byte.class) return (byte) number;
        if (type == short.class || type == Short.class) return (short) number;
        if (type == int.class || type == Integer.class) return (int) number;
        if (type == long.class || type == Long.class) return number;
        if (type == double.class || type == Double.class) return (number % 1_000_000) / 8.0;
        if (type == boolean.class) return RANDOM.nextBoolean();
        if (type == String.class) return TEXTS[RANDOM.nextInt(TEXTS.length)];
        if (type == Uuid.class) return new Uuid(RANDOM.nextLong(), RANDOM.nextLong());
        byte[] bytes = new byte[RANDOM.nextInt(4)];
        RANDOM.nextBytes(bytes);
        if (type == byte[].class) return bytes;
        if (type == ByteBuffer.class) return ByteBuffer.wrap(bytes);
        return made(type, share);
    }
}
