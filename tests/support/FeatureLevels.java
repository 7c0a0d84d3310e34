import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.server.common.FeatureVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * The levels of the features that this release knows: names, releases, dependencies. tests/support/feature_levels.py
 * runs it with the jars of several releases.
 */
public class FeatureLevels {
    public static void main(String[] arguments) throws Exception {
        System.out.println("{\n \"latest_production\": " + MetadataVersion.LATEST_PRODUCTION.featureLevel() + ",");
        System.out.println(" \"metadata_versions\": [");
        List<String> lines = new ArrayList<>();
        for (MetadataVersion version : MetadataVersion.VERSIONS) {
            if (version.featureLevel() > 0) { // others belong to ZooKeeper
                lines.add("  {\"level\": " + version.featureLevel() + ", \"name\": " + quoted(version.version())
                    + ", \"release\": " + quoted(version.shortVersion())
                    + ", \"changes_metadata\": " + version.didMetadataChange() + "}");
            }
        }
        System.out.println(String.join(",\n", lines) + "\n ],\n \"features\": {");
        System.out.println(String.join(",\n", features()) + "\n }\n}");
    }

    private static List<String> features() throws Exception {
        Class<?> features = enumOfFeatures();
        List<String> lines = new ArrayList<>();
        for (Object feature : (List<?>) features.getField("PRODUCTION_FEATURES").get(null)) {
            String name = (String) features.getMethod("featureName").invoke(feature);
            short latest = (short) features.getMethod("latestProduction").invoke(feature);
            List<String> levels = new ArrayList<>();
            for (FeatureVersion level : (FeatureVersion[]) features.getMethod("featureVersions").invoke(feature)) {
                levels.add("   {\"level\": " + level.featureLevel()
                    + ", \"metadata_version\": " + level.bootstrapMetadataVersion().featureLevel()
                    + ", \"requires\": " + required(level) + "}");
            }
            lines.add("  " + quoted(name) + ": {\"latest_production\": " + latest + ", \"levels\": [\n"
                + String.join(",\n", levels) + "\n  ]}");
        }
        return lines;
    }

    /** Features in 3.9, Feature since 4.0. */
    private static Class<?> enumOfFeatures() throws Exception {
        try {
            return Class.forName("org.apache.kafka.server.common.Feature");
        } catch (ClassNotFoundException e) {
            return Class.forName("org.apache.kafka.server.common.Features");
        }
    }

    private static String required(FeatureVersion level) throws Exception {
        Method dependencies = FeatureVersion.class.getMethod("dependencies");
        List<String> pairs = new ArrayList<>();
        for (Map.Entry<?, ?> pair : new TreeMap<>((Map<?, ?>) dependencies.invoke(level)).entrySet()) {
            pairs.add(quoted((String) pair.getKey()) + ": " + pair.getValue());
        }
        return "{" + String.join(", ", pairs) + "}";
    }

    private static String quoted(String text) {
        return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }
}
