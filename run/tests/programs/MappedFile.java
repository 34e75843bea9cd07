import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.SplittableRandom;

/** Fills a mapped file, changes it here and there, sums it: java MappedFile write|read FILE. */
public final class MappedFile {
    private static final int NUMBERS = 8 << 20; // of 8 bytes
    private static final int CHANGES = 4_000;

    private static LongBuffer map(FileChannel channel, MapMode mode) throws IOException {
        MappedByteBuffer bytes = channel.map(mode, 0, 8L * NUMBERS);
        return bytes.order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
    }

    private static void write(FileChannel channel) throws IOException {
        MappedByteBuffer bytes = channel.map(MapMode.READ_WRITE, 0, 8L * NUMBERS);
        LongBuffer numbers = bytes.order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
        SplittableRandom random = new SplittableRandom(17);
        for (int i = 0; i < NUMBERS; i++) {
            numbers.put(i, random.nextLong());
        }
        for (int i = 0; i < CHANGES; i++) {
            int where = random.nextInt(NUMBERS);
            numbers.put(where, numbers.get(where) ^ i);
        }
        bytes.force();
    }

    /** A null within makes the JVM use its signal handler, again and again. */
    private static int countNulls(int times) {
        int count = 0;
        String[] names = {"a", null};
        for (int i = 0; i < times; i++) {
            try {
                count -= names[i % 2].length() - 1;
            } catch (NullPointerException expected) {
                count++;
            }
        }
        return count;
    }

    private static void read(LongBuffer numbers) throws InterruptedException {
        long[] sums = new long[2];
        Thread[] threads = new Thread[sums.length];
        for (int t = 0; t < threads.length; t++) {
            final int part = t;
            threads[t] = new Thread(() -> {
                long sum = 0;
                for (int i = part; i < NUMBERS; i += threads.length) {
                    sum = sum * 31 + numbers.get(i);
                }
                SplittableRandom random = new SplittableRandom(part);
                for (int i = 0; i < CHANGES; i++) {
                    sum = sum * 31 + numbers.get(random.nextInt(NUMBERS));
                }
                sums[part] = sum;
            });
            threads[t].start();
        }
        int nulls = countNulls(100_000);
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println(sums[0] + " " + sums[1] + " " + nulls);
    }

    public static void main(String[] arguments) throws Exception {
        Path path = Path.of(arguments[1]);
        if (arguments[0].equals("write")) {
            try (FileChannel channel = FileChannel.open(path, StandardOpenOption.CREATE,
                    StandardOpenOption.READ, StandardOpenOption.WRITE)) {
                write(channel);
                read(map(channel, MapMode.READ_ONLY));
            }
        } else {
            try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
                read(map(channel, MapMode.READ_ONLY));
            }
        }
    }
}
