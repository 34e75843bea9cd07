import java.nio.file.Path;
import java.util.Random;
import java.util.zip.CRC32;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.NumericDocValuesField;
import org.apache.lucene.document.StoredField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.store.MMapDirectory;
import org.apache.lucene.util.BytesRef;

/** Builds an index of many documents, or searches it: java LuceneIndex build|search FOLDER. */
public final class LuceneIndex {
    private static final int DOCUMENTS = Integer.getInteger("scale", 1) * 25_000;
    private static final int WORDS = 7;
    private static final int STORED_BYTES = 1_200;

    private static void build(MMapDirectory folder) throws Exception {
        IndexWriterConfig config = new IndexWriterConfig(null).setUseCompoundFile(false);
        Random random = new Random(23);
        byte[] bytes = new byte[STORED_BYTES];
        try (IndexWriter writer = new IndexWriter(folder, config)) {
            for (int i = 0; i < DOCUMENTS; i++) {
                random.nextBytes(bytes);
                Document document = new Document();
                document.add(new StringField("word", "w" + i % WORDS, Field.Store.NO));
                document.add(new StringField("id", "id" + i, Field.Store.NO));
                document.add(new NumericDocValuesField("number", i));
                document.add(new StoredField("bytes", bytes.clone()));
                writer.addDocument(document);
            }
            writer.forceMerge(1);
        }
    }

    private static void search(MMapDirectory folder) throws Exception {
        try (DirectoryReader reader = DirectoryReader.open(folder)) {
            IndexSearcher searcher = new IndexSearcher(reader);
            CRC32 sum = new CRC32();
            TermQuery query = new TermQuery(new Term("word", "w3"));
            for (ScoreDoc hit : searcher.search(query, DOCUMENTS).scoreDocs) {
                BytesRef bytes = searcher.doc(hit.doc).getBinaryValue("bytes");
                sum.update(bytes.bytes, bytes.offset, bytes.length);
            }
            Random random = new Random(29);
            for (int i = 0; i < 1_000; i++) {
                Term id = new Term("id", "id" + random.nextInt(DOCUMENTS));
                ScoreDoc[] hits = searcher.search(new TermQuery(id), 2).scoreDocs;
                BytesRef bytes = searcher.doc(hits[0].doc).getBinaryValue("bytes");
                sum.update(bytes.bytes, bytes.offset, bytes.length);
            }
            System.out.println(searcher.count(query) + " " + sum.getValue());
        }
    }

    public static void main(String[] arguments) throws Exception {
        try (MMapDirectory folder = new MMapDirectory(Path.of(arguments[1]))) {
            if (arguments[0].equals("build")) {
                build(folder);
            } else {
                search(folder);
            }
        }
    }
}
