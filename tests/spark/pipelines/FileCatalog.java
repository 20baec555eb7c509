import java.io.*;
import java.nio.file.*;
import java.util.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.*;
import org.apache.spark.sql.connector.write.*;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A catalog whose tables take Spark's own MERGE (SupportsRowLevelOperations), each a file that is replaced as a whole:
 * what AUTO CDC writes into while no connector with a release for this version of Spark does. For tests, of one driver.
 */
public class FileCatalog implements TableCatalog, SupportsNamespaces {
  private String name;
  private Path folder;

  /** What a file holds. */
  private record Content(StructType schema, HashMap<String, String> properties, ArrayList<UnsafeRow> rows)
      implements Serializable {}

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    this.folder = Path.of(options.get("warehouse"));
    folder.toFile().mkdirs();
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public Identifier[] listTables(String[] namespace) {
    return Arrays.stream(folder.toFile().list()).map(each -> Identifier.of(namespace, each)).toArray(Identifier[]::new);
  }

  @Override
  public Table loadTable(Identifier identifier) throws NoSuchTableException {
    if (!Files.exists(path(identifier))) throw new NoSuchTableException(identifier);
    return new FileTable(identifier, path(identifier));
  }

  @Override
  public Table createTable(
      Identifier identifier, StructType schema, Transform[] partitions, Map<String, String> properties) {
    save(path(identifier), new Content(schema, new HashMap<>(properties), new ArrayList<>()));
    return new FileTable(identifier, path(identifier));
  }

  @Override
  public Table createTable(Identifier identifier, TableInfo info) {
    return createTable(identifier, info.schema(), info.partitions(), info.properties());
  }

  @Override
  public Table createTable(
      Identifier identifier, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    return createTable(identifier, CatalogV2Util.v2ColumnsToStructType(columns), partitions, properties);
  }

  @Override
  public Table alterTable(Identifier identifier, TableChange... changes) throws NoSuchTableException {
    Content content = load(path(identifier));
    for (TableChange change : changes) {
      if (!(change instanceof TableChange.SetProperty set)) throw new UnsupportedOperationException(change.toString());
      content.properties.put(set.property(), set.value());
    }
    save(path(identifier), content);
    return loadTable(identifier);
  }

  @Override
  public boolean dropTable(Identifier identifier) {
    return path(identifier).toFile().delete();
  }

  @Override
  public void renameTable(Identifier before, Identifier after) {
    throw new UnsupportedOperationException();
  }

  @Override
  public String[][] listNamespaces() {
    return new String[0][];
  }

  @Override
  public String[][] listNamespaces(String[] namespace) {
    return new String[0][];
  }

  @Override
  public boolean namespaceExists(String[] namespace) {
    return true;
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(String[] namespace) {
    return Map.of();
  }

  @Override
  public void createNamespace(String[] namespace, Map<String, String> metadata) {}

  @Override
  public void alterNamespace(String[] namespace, NamespaceChange... changes) {}

  @Override
  public boolean dropNamespace(String[] namespace, boolean cascade) {
    return false;
  }

  private Path path(Identifier identifier) {
    return folder.resolve(identifier.name());
  }

  private static Content load(Path path) {
    try (ObjectInputStream input = new ObjectInputStream(Files.newInputStream(path))) {
      return (Content) input.readObject();
    } catch (IOException | ClassNotFoundException error) {
      throw new IllegalStateException(path.toString(), error);
    }
  }

  private static void save(Path path, Content content) {
    Path beside = path.resolveSibling("." + path.getFileName());
    try {
      try (ObjectOutputStream output = new ObjectOutputStream(Files.newOutputStream(beside))) {
        output.writeObject(content);
      }
      Files.move(beside, path, StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private record FileTable(Identifier identifier, Path path)
      implements SupportsRead, SupportsWrite, SupportsRowLevelOperations {
    @Override
    public String name() {
      return identifier.toString();
    }

    @Override
    public StructType schema() {
      return load(path).schema;
    }

    @Override
    public Map<String, String> properties() {
      return load(path).properties;
    }

    @Override
    public Set<TableCapability> capabilities() {
      return Set.of(TableCapability.BATCH_READ, TableCapability.BATCH_WRITE, TableCapability.TRUNCATE);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      Content content = load(path);
      return () -> new Rows(content.schema, content.rows);
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
      return new Writing(path, info.schema(), false);
    }

    @Override
    public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
      return () -> new Replacing(FileTable.this, info.command());
    }
  }

  /** An operation that reads a table, and writes all of its rows. */
  private record Replacing(FileTable table, RowLevelOperation.Command command) implements RowLevelOperation {
    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      return table.newScanBuilder(options);
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
      return new Writing(table.path, info.schema(), true);
    }
  }

  private record Rows(StructType readSchema, ArrayList<UnsafeRow> rows) implements Scan, Batch, InputPartition {
    @Override
    public Batch toBatch() {
      return this;
    }

    @Override
    public InputPartition[] planInputPartitions() {
      return new InputPartition[] {this};
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
      return partition -> new Reader(((Rows) partition).rows.iterator());
    }
  }

  private static final class Reader implements PartitionReader<InternalRow> {
    private final Iterator<UnsafeRow> rows;

    Reader(Iterator<UnsafeRow> rows) {
      this.rows = rows;
    }

    @Override
    public boolean next() {
      return rows.hasNext();
    }

    @Override
    public InternalRow get() {
      return rows.next();
    }

    @Override
    public void close() {}
  }

  private record Writing(Path path, StructType schema, boolean replaces)
      implements WriteBuilder, SupportsTruncate, Write, BatchWrite {
    @Override
    public WriteBuilder truncate() {
      return new Writing(path, schema, true);
    }

    @Override
    public Write build() {
      return this;
    }

    @Override
    public BatchWrite toBatch() {
      return this;
    }

    @Override
    public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
      StructType columns = schema;
      return (partition, task) -> new Written(columns);
    }

    @Override
    public void commit(WriterCommitMessage[] messages) {
      Content content = load(path);
      if (replaces) content.rows.clear();
      for (WriterCommitMessage each : messages) content.rows.addAll(((Message) each).rows);
      save(path, content);
    }

    @Override
    public void abort(WriterCommitMessage[] messages) {}
  }

  private record Message(ArrayList<UnsafeRow> rows) implements WriterCommitMessage {}

  private static final class Written implements DataWriter<InternalRow> {
    private final ArrayList<UnsafeRow> rows = new ArrayList<>();
    private final UnsafeProjection projection;

    Written(StructType schema) {
      projection = UnsafeProjection.create(schema);
    }

    @Override
    public void write(InternalRow row) {
      rows.add(projection.apply(row).copy());
    }

    @Override
    public WriterCommitMessage commit() {
      return new Message(rows);
    }

    @Override
    public void abort() {}

    @Override
    public void close() {}
  }
}
