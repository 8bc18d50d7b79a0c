import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.Executors;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Debezium's engine with a sink that does what Debezium Server's HTTP sink does: a request for each
 * record, a few tries, an end when they fail, and a record counts as processed once it was taken.
 *
 * It reads the application.properties of Debezium Server, and writes each answer to a file, a line each.
 */
public final class DebeziumSink {
    private final Properties application = new Properties();
    private final HttpClient client = HttpClient.newHttpClient();
    private final int retries;
    private final Duration pause;
    private final byte[] secret;
    private final Writer answers;

    private DebeziumSink(Path path, Path answersPath) throws IOException {
        answers = Files.newBufferedWriter(
            answersPath, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        try (var reader = Files.newBufferedReader(path)) {
            application.load(reader);
        }
        retries = Integer.parseInt(application.getProperty("debezium.sink.http.retries", "5"));
        pause = Duration.ofMillis(Long.parseLong(
            application.getProperty("debezium.sink.http.retry.interval.ms", "1000")));
        var text = application.getProperty("debezium.sink.http.authentication.webhook.secret");
        secret = Base64.getDecoder().decode(text.replaceFirst("^whsec_", ""));
    }

    /** What the server hands the engine: its properties are those of the source and the formats. */
    private Properties engineProperties() {
        var properties = new Properties();
        properties.setProperty("name", application.getProperty("debezium.sink.type"));
        for (var name : application.stringPropertyNames()) {
            var value = application.getProperty(name);
            if (name.startsWith("debezium.source.")) {
                properties.setProperty(name.substring("debezium.source.".length()), value);
            } else if (name.startsWith("debezium.format.value.")) {
                properties.setProperty(
                    "value.converter." + name.substring("debezium.format.value.".length()), value);
            }
        }
        return properties;
    }

    private void run() throws Exception {
        var failure = new Throwable[1];
        var engine = DebeziumEngine
            .create(Json.class, Json.class, Json.class,
                "io.debezium.embedded.async.ConvertingAsyncEngineBuilderFactory")
            .using(engineProperties())
            .using((isWell, message, error) -> {
                if (!isWell) {
                    System.err.println("the engine ended: " + message + " " + error);
                    failure[0] = error == null ? new IllegalStateException(message) : error;
                }
            })
            .notifying(this::handle)
            .build();
        var executor = Executors.newSingleThreadExecutor();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                engine.close();
            } catch (Exception error) {
                System.err.println("it was ending already: " + error.getMessage());
            }
        }));
        executor.submit(engine).get();
        // A hook that closes the engine again would wait for it.
        Runtime.getRuntime().halt(failure[0] == null ? 0 : 1);
    }

    private void handle(
        List<ChangeEvent<String, String>> records,
        DebeziumEngine.RecordCommitter<ChangeEvent<String, String>> committer
    ) throws InterruptedException {
        for (var record : records) {
            if (record.value() == null) {
                continue;
            }
            var id = "msg_" + UUID.randomUUID();
            int attempts = 0;
            while (!send(record.value(), id)) {
                attempts++;
                if (attempts >= retries) {
                    throw new IllegalStateException("not taken after " + attempts + " tries");
                }
                Thread.sleep(pause.toMillis());
            }
            committer.markProcessed(record);
        }
        committer.markBatchFinished();
    }

    private boolean send(String body, String id) throws InterruptedException {
        var moment = System.currentTimeMillis() / 1000;
        var request = HttpRequest
            .newBuilder(URI.create(application.getProperty("debezium.sink.http.url")))
            .timeout(Duration.ofSeconds(60))
            .setHeader("content-type", "application/json")
            .setHeader("webhook-id", id)
            .setHeader("webhook-timestamp", Long.toString(moment))
            .setHeader("webhook-signature", "v1," + sign(id + "." + moment + "." + body))
            .POST(HttpRequest.BodyPublishers.ofString(body))
            .build();
        HttpResponse<String> answer;
        try {
            answer = client.send(request, HttpResponse.BodyHandlers.ofString());
        } catch (IOException error) {
            note("none " + error.getMessage());
            return false;
        }
        note(answer.statusCode() + " " + answer.body());
        return answer.statusCode() / 100 == 2;
    }

    private void note(String line) {
        try {
            answers.write(line.strip() + "\n");
            answers.flush();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private String sign(String text) {
        try {
            var code = Mac.getInstance("HmacSHA256");
            code.init(new SecretKeySpec(secret, "HmacSHA256"));
            return Base64.getEncoder()
                .encodeToString(code.doFinal(text.getBytes(StandardCharsets.UTF_8)));
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    public static void main(String[] arguments) throws Exception {
        new DebeziumSink(Path.of(arguments[0]), Path.of(arguments[1])).run();
    }
}
