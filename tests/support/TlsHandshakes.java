import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;

/** Whether Kafka's client trusts a server: each line of stdin is a host, a port and a PEM file of CAs. */
public class TlsHandshakes {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] parts = line.split(" ");
            try {
                shakeHands(parts[0], Integer.parseInt(parts[1]), parts[2]);
                System.out.println("trusted");
            } catch (Exception e) {
                System.out.println("refused");
                System.err.println(line + ": " + e);
            }
            System.out.flush();
        }
    }

    private static void shakeHands(String host, int port, String authorities) throws Exception {
        DefaultSslEngineFactory factory = new DefaultSslEngineFactory();
        Map<String, Object> settings = new HashMap<>();
        settings.put("ssl.protocol", "TLSv1.3");
        settings.put("ssl.trustmanager.algorithm", "PKIX");
        settings.put("ssl.keymanager.algorithm", "SunX509");
        settings.put("ssl.truststore.type", "PEM");
        settings.put("ssl.truststore.location", authorities);
        factory.configure(settings);
        TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
        trust.init(factory.truststore());
        SSLContext context = SSLContext.getInstance("TLSv1.3");
        context.init(null, trust.getTrustManagers(), null);
        try (SSLSocket socket = (SSLSocket) context.getSocketFactory().createSocket(
                new java.net.Socket("127.0.0.1", port), host, port, true)) {
            SSLParameters parameters = socket.getSSLParameters();
            parameters.setEndpointIdentificationAlgorithm("HTTPS");
            socket.setSSLParameters(parameters);
            socket.startHandshake();
        }
    }
}
