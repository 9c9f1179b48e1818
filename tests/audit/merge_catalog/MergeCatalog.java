import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A catalog whose tables can MERGE, for tests: pyspark comes with none. Each table is a file, which a commit replaces.
 *
 * <p>In a file: the schema, the properties, and of each row what Spark reads again, and the same as JSON for who looks at it.
 */
public class MergeCatalog implements TableCatalog, SupportsNamespaces {
  private String name;
  private Path directory;

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    this.directory = Path.of(options.get("path"));
  }

  @Override
  public String name() {
    return name;
  }

  private Path file(Identifier identifier) {
    return directory.resolve(identifier.name() + ".table");
  }

  @Override
  public Identifier[] listTables(String[] namespace) {
    return new Identifier[0];
  }

  @Override
  public Table loadTable(Identifier identifier) throws NoSuchTableException {
    if (!Files.exists(file(identifier))) {
      throw new NoSuchTableException(identifier);
    }
    return new MergeTable(file(identifier));
  }

  @Override
  public Table createTable(Identifier identifier, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    MergeTable table = new MergeTable(file(identifier), CatalogV2Util.v2ColumnsToStructType(columns), properties);
    table.store(List.of());
    return table;
  }

  @Override
  public Table alterTable(Identifier identifier, TableChange... changes) throws NoSuchTableException {
    MergeTable table = (MergeTable) loadTable(identifier);
    for (TableChange change : changes) {
      if (change instanceof TableChange.SetProperty) {
        TableChange.SetProperty set = (TableChange.SetProperty) change;
        table.properties.put(set.property(), set.value());
      } else {
        throw new UnsupportedOperationException(String.valueOf(change));
      }
    }
    table.store(table.rows());
    return table;
  }

  @Override
  public boolean dropTable(Identifier identifier) {
    return file(identifier).toFile().delete();
  }

  @Override
  public void renameTable(Identifier from, Identifier to) {
    throw new UnsupportedOperationException("rename");
  }

  @Override
  public String[][] listNamespaces() {
    return new String[][] {{"default"}};
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
}

/** A table: its file is read when it is loaded, and written anew by each commit. */
class MergeTable implements Table, SupportsRead, SupportsWrite, SupportsRowLevelOperations {
  final Path file;
  final StructType schema;
  final Map<String, String> properties;

  MergeTable(Path file, StructType schema, Map<String, String> properties) {
    this.file = file;
    this.schema = schema;
    this.properties = new HashMap<>(properties);
  }

  @SuppressWarnings("unchecked")
  MergeTable(Path file) {
    this.file = file;
    List<String> lines = lines();
    this.schema = (StructType) DataType.fromJson(lines.get(0));
    try (ObjectInputStream in =
        new ObjectInputStream(new ByteArrayInputStream(Base64.getDecoder().decode(lines.get(1))))) {
      this.properties = (Map<String, String>) in.readObject();
    } catch (IOException | ClassNotFoundException error) {
      throw new IllegalStateException(error);
    }
  }

  private List<String> lines() {
    try {
      return Files.readAllLines(file);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  List<byte[]> rows() {
    List<byte[]> found = new ArrayList<>();
    List<String> lines = lines();
    for (String line : lines.subList(2, lines.size())) {
      found.add(Base64.getDecoder().decode(line.substring(0, line.indexOf('\t'))));
    }
    return found;
  }

  void store(List<byte[]> rows) {
    StringBuilder text = new StringBuilder(schema.json()).append('\n');
    try {
      ByteArrayOutputStream packed = new ByteArrayOutputStream();
      try (ObjectOutputStream out = new ObjectOutputStream(packed)) {
        out.writeObject(new HashMap<>(properties));
      }
      text.append(Base64.getEncoder().encodeToString(packed.toByteArray())).append('\n');
      for (byte[] bytes : rows) {
        Row row = (Row) CatalystTypeConverters.convertToScala(unsafe(bytes, schema.size()), schema);
        text.append(Base64.getEncoder().encodeToString(bytes)).append('\t').append(row.json()).append('\n');
      }
      Path written = file.resolveSibling(file.getFileName() + ".new");
      Files.write(written, text.toString().getBytes(StandardCharsets.UTF_8));
      Files.move(written, file, java.nio.file.StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  static UnsafeRow unsafe(byte[] bytes, int columns) {
    UnsafeRow row = new UnsafeRow(columns);
    row.pointTo(bytes, bytes.length);
    return row;
  }

  @Override
  public String name() {
    return file.getFileName().toString();
  }

  @Override
  public Column[] columns() {
    return CatalogV2Util.structTypeToV2Columns(schema, false);
  }

  @Override
  public Map<String, String> properties() {
    return properties;
  }

  @Override
  public Set<TableCapability> capabilities() {
    return Set.of(TableCapability.BATCH_READ, TableCapability.BATCH_WRITE);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return () -> new WholeScan(schema, rows().toArray(new byte[0][]));
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new WholeWriteBuilder(this, false);
  }

  @Override
  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    return () ->
        new RowLevelOperation() {
          @Override
          public Command command() {
            return info.command();
          }

          @Override
          public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
            return MergeTable.this.newScanBuilder(options);
          }

          @Override
          public WriteBuilder newWriteBuilder(LogicalWriteInfo write) {
            return new WholeWriteBuilder(MergeTable.this, true);
          }
        };
  }
}

/** All rows, by one task. */
class WholeScan implements Scan, Batch {
  private final StructType schema;
  private final byte[][] rows;

  WholeScan(StructType schema, byte[][] rows) {
    this.schema = schema;
    this.rows = rows;
  }

  record Rows(byte[][] rows) implements InputPartition {}

  record Factory(int columns) implements PartitionReaderFactory {
    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      byte[][] rows = ((Rows) partition).rows();
      return new PartitionReader<>() {
        private int at = -1;

        @Override
        public boolean next() {
          return ++at < rows.length;
        }

        @Override
        public InternalRow get() {
          return MergeTable.unsafe(rows[at], columns);
        }

        @Override
        public void close() {}
      };
    }
  }

  @Override
  public StructType readSchema() {
    return schema;
  }

  @Override
  public Batch toBatch() {
    return this;
  }

  @Override
  public InputPartition[] planInputPartitions() {
    return new InputPartition[] {new Rows(rows)};
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new Factory(schema.size());
  }
}

/** What is written comes behind the rows that there are, or in their place. */
class WholeWriteBuilder implements WriteBuilder, Write, BatchWrite {
  private final MergeTable table;
  private final boolean replaces;

  WholeWriteBuilder(MergeTable table, boolean replaces) {
    this.table = table;
    this.replaces = replaces;
  }

  record Written(List<byte[]> rows) implements WriterCommitMessage {}

  record Factory(StructType schema) implements DataWriterFactory {
    @Override
    public DataWriter<InternalRow> createWriter(int partition, long task) {
      UnsafeProjection projection = UnsafeProjection.create(schema);
      List<byte[]> rows = new ArrayList<>();
      return new DataWriter<>() {
        @Override
        public void write(InternalRow row) {
          rows.add(projection.apply(row).getBytes());
        }

        @Override
        public WriterCommitMessage commit() {
          return new Written(rows);
        }

        @Override
        public void abort() {}

        @Override
        public void close() {}
      };
    }
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
    return new Factory(table.schema);
  }

  @Override
  public void commit(WriterCommitMessage[] messages) {
    List<byte[]> rows = replaces ? new ArrayList<>() : table.rows();
    for (WriterCommitMessage message : messages) {
      rows.addAll(((Written) message).rows());
    }
    table.store(rows);
  }

  @Override
  public void abort(WriterCommitMessage[] messages) {}
}
