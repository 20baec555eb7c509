import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.JsonByteArray;
import java.io.BufferedOutputStream;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Debezium's engine with a connector: each change is one line of JSON, until a number of them is in the file. */
public final class ChangesToFile {
    /** The arguments: a file of properties, the file of the lines, and the number of changes. */
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        try (FileInputStream input = new FileInputStream(arguments[0])) {
            properties.load(input);
        }
        Lines lines = new Lines(arguments[1], Long.parseLong(arguments[2]));
        Throwable[] failure = new Throwable[1];
        DebeziumEngine<ChangeEvent<byte[], byte[]>> engine = DebeziumEngine.create(JsonByteArray.class)
                .using(properties)
                .notifying(lines)
                .using((success, message, error) -> {
                    if (!success) {
                        System.err.println(message);
                        failure[0] = error == null ? new IllegalStateException(message) : error;
                    }
                    lines.done.countDown();
                })
                .build();
        ExecutorService thread = Executors.newSingleThreadExecutor();
        thread.execute(engine);
        lines.done.await();
        engine.close(); // which also stores the offsets
        thread.shutdown();
        lines.close();
        if (failure[0] != null) {
            failure[0].printStackTrace(new PrintStream(System.err));
            System.exit(1);
        }
    }

    /** Writes what it is given, and counts it. */
    private static final class Lines implements DebeziumEngine.ChangeConsumer<ChangeEvent<byte[], byte[]>> {
        final CountDownLatch done = new CountDownLatch(1);
        private final FileOutputStream file;
        private final OutputStream output;
        private long missing;

        Lines(String path, long changes) throws Exception {
            file = new FileOutputStream(path);
            output = new BufferedOutputStream(file, 1 << 20);
            missing = changes;
        }

        @Override
        public void handleBatch(
                List<ChangeEvent<byte[], byte[]>> events,
                DebeziumEngine.RecordCommitter<ChangeEvent<byte[], byte[]>> committer) throws InterruptedException {
            try {
                for (ChangeEvent<byte[], byte[]> event : events) {
                    if (event.value() != null) { // as a tombstone has
                        output.write(event.value());
                        output.write('\n');
                        missing--;
                    }
                    committer.markProcessed(event);
                }
                flush(); // before the positions of these changes are stored
            } catch (java.io.IOException error) {
                throw new java.io.UncheckedIOException(error);
            }
            committer.markBatchFinished();
            if (missing <= 0) {
                done.countDown();
            }
        }

        private void flush() throws java.io.IOException {
            output.flush();
        }

        void close() throws java.io.IOException {
            flush();
            file.getFD().sync();
            file.close();
        }
    }
}
