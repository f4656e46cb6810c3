package redisbench;

import com.google.gson.Gson;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.logging.LogManager;
import java.util.zip.CRC32;

/** Speaks the contract of docs/drivers.md, so that a driver only calls its library. */
final class Driver {
  /** The content of the frame Configure. */
  static final class Config {
    String topology;
    List<String> addresses;
    int protocol, database, connections, callers, retries;
    String usernameFile, passwordFile, sharing;
    long connectTimeoutMilliseconds, responseTimeoutMilliseconds;
    List<Operation> operations;

    boolean isCluster() {
      return topology.equals("Cluster");
    }

    boolean isShared() {
      return sharing.equals("Shared");
    }
  }

  /** An operation, and the index of the argument with the first key, if there is one. */
  record Operation(String name, Integer key) {}

  /** Calls a library. Replies are null, byte[], Long, and collections and maps of them. */
  interface Client {
    CompletionStage<Object> call(List<byte[]> arguments, Integer key);

    /** Where to call: threads if the library blocks. */
    default Executor callers() {
      return Runnable::run;
    }

    default int connections() {
      return 0;
    }

    void close();
  }

  interface Open {
    Client open(Config config) throws Exception;
  }

  /** Gives the outcome of an exception: the text of a server's error, or one of the numbers. */
  interface Classify {
    Object outcome(Throwable error);
  }

  static final int TIMEOUT = 2, DISCONNECTED = 3, LIBRARY = 4;
  private static final int HELLO = 1, CONFIGURE = 2, READY = 3, FAILED = 4, CALL = 5, DONE = 6, DRAIN = 7, BYE = 8;
  private static final int ERROR_REPLY = 1, CHECKSUM = 1, NULL = 2;
  private static final byte[] DRAINED = {};

  private final SocketChannel socket;
  private final Classify classify;
  private final LinkedBlockingQueue<byte[]> outcomes = new LinkedBlockingQueue<>();
  private Client client;
  private Config config;
  private Semaphore callers;

  private Driver(SocketChannel socket, Classify classify) {
    this.socket = socket;
    this.classify = classify;
  }

  /** Serves the shard until it closes the socket. */
  static void run(String[] arguments, String library, Class<?> of, Open open, Classify classify) throws Exception {
    if (Arrays.asList(arguments).contains("--noop")) {
      open = config -> new Noop();
    }
    // Reconnections are no news here.
    LogManager.getLogManager().reset();
    var driver = new Driver(connect(System.getenv("REDISBENCH_DRIVER_SOCKET")), classify);
    // The name of its archive: library-version.jar.
    var archive = Path.of(of.getProtectionDomain().getCodeSource().getLocation().toURI()).getFileName().toString();
    var version = archive.replaceAll("^[a-z-]*-([0-9].*)\\.jar$", "$1");
    var hello = Map.of("protocol", 1, "language", "Java", "library", library, "version", version);
    driver.send(HELLO, new Gson().toJson(hello).getBytes(StandardCharsets.UTF_8));
    var writer = new Thread(driver::write);
    writer.setDaemon(true);
    writer.start();
    try {
      driver.serve(new DataInputStream(new BufferedInputStream(Channels.newInputStream(driver.socket), 1 << 16)), open);
    } catch (EOFException end) {
      System.exit(0);
    }
  }

  private void serve(DataInputStream in, Open open) throws Exception {
    while (true) {
      var body = new byte[Integer.reverseBytes(in.readInt()) - 1];
      int kind = in.read();
      in.readFully(body);
      if (kind == CALL) {
        begin(ByteBuffer.wrap(body).order(ByteOrder.LITTLE_ENDIAN));
      } else if (kind == CONFIGURE) {
        config = new Gson().fromJson(new String(body, StandardCharsets.UTF_8), Config.class);
        callers = new Semaphore(config.callers);
        try {
          client = open.open(config);
          send(READY, ("{\"connections\":" + client.connections() + "}").getBytes(StandardCharsets.UTF_8));
        } catch (Exception error) {
          var cause = error.getCause() == null ? "" : ": " + error.getCause().getMessage();
          send(FAILED, (error.getMessage() + cause).getBytes(StandardCharsets.UTF_8));
        }
      } else if (kind == DRAIN) {
        callers.acquire(config.callers);
        outcomes.add(DRAINED);
      }
    }
  }

  private void begin(ByteBuffer body) throws InterruptedException {
    while (body.hasRemaining()) {
      long id = body.getLong();
      var key = config.operations.get(body.getShort() & 0xFFFF).key();
      int flags = body.get();
      var arguments = new ArrayList<byte[]>();
      for (int left = body.getInt(); left > 0; left--) {
        var argument = new byte[body.getInt()];
        body.get(argument);
        arguments.add(argument);
      }
      callers.acquire();
      client.callers().execute(() -> call(id, flags, arguments, key));
    }
  }

  private void call(long id, int flags, List<byte[]> arguments, Integer key) {
    long called = System.nanoTime();
    try {
      client.call(arguments, key).whenComplete((reply, error) -> end(id, flags, called, reply, error));
    } catch (RuntimeException error) {
      end(id, flags, called, null, error);
    }
  }

  private void end(long id, int flags, long called, Object reply, Throwable error) {
    long completed = System.nanoTime();
    int result = 0;
    var word = "";
    if (error != null) {
      var cause = error instanceof CompletionException && error.getCause() != null ? error.getCause() : error;
      var outcome = classify.outcome(cause);
      if (outcome instanceof Integer number) {
        result = number;
        word = number == LIBRARY ? cause.getClass().getSimpleName() : "";
      } else {
        result = ERROR_REPLY;
        word = outcome.toString().split(" ", 2)[0];
      }
    }
    var bytes = word.getBytes(StandardCharsets.UTF_8);
    bytes = Arrays.copyOf(bytes, Math.min(bytes.length, 32));
    boolean isNull = error == null && reply == null;
    var body = ByteBuffer.allocate(31 + bytes.length).order(ByteOrder.LITTLE_ENDIAN);
    body.putLong(id).putLong(called).putLong(completed);
    body.putInt((flags & CHECKSUM) == 0 ? 0 : touch(reply));
    body.put((byte) (flags & CHECKSUM | (isNull ? NULL : 0))).put((byte) result).put((byte) bytes.length).put(bytes);
    outcomes.add(body.array());
    callers.release();
  }

  /** Writes all outcomes that wait in one frame. */
  private void write() {
    try {
      while (true) {
        var waiting = new ArrayList<>(List.of(outcomes.take()));
        outcomes.drainTo(waiting);
        boolean isDrained = waiting.remove(DRAINED);
        var body = ByteBuffer.allocate(waiting.stream().mapToInt(outcome -> outcome.length).sum());
        waiting.forEach(body::put);
        if (body.capacity() > 0) {
          send(DONE, body.array());
        }
        if (isDrained) {
          client.close();
          send(BYE, new byte[0]);
        }
      }
    } catch (Exception error) {
      System.err.println("driver: " + error);
      System.exit(1);
    }
  }

  private synchronized void send(int kind, byte[] body) throws IOException {
    var frame = ByteBuffer.allocate(5 + body.length).order(ByteOrder.LITTLE_ENDIAN);
    frame.putInt(1 + body.length).put((byte) kind).put(body).flip();
    while (frame.hasRemaining()) {
      socket.write(frame);
    }
  }

  /** The sum of the checksums of all strings and integers. */
  private static int touch(Object reply) {
    if (reply instanceof byte[] bytes) {
      var sum = new CRC32();
      sum.update(bytes);
      return (int) sum.getValue();
    } else if (reply instanceof Long number) {
      return touch(number.toString().getBytes(StandardCharsets.UTF_8));
    } else if (reply instanceof Collection<?> elements) {
      return elements.stream().mapToInt(Driver::touch).sum();
    } else if (reply instanceof Map<?, ?> map) {
      return touch(map.keySet()) + touch(map.values());
    } else if (reply instanceof Map.Entry<?, ?> entry) {
      return touch(entry.getKey()) + touch(entry.getValue());
    }
    return 0;
  }

  /** The content of a file, or null without one. */
  static String secret(String path) throws IOException {
    return path == null ? null : Files.readString(Path.of(path));
  }

  /** Waits for the shard, which may start later. */
  private static SocketChannel connect(String path) throws Exception {
    for (int attempt = 0; ; attempt++) {
      var socket = SocketChannel.open(StandardProtocolFamily.UNIX);
      try {
        socket.connect(UnixDomainSocketAddress.of(path));
        return socket;
      } catch (IOException error) {
        socket.close();
        if (attempt == 600) {
          throw error;
        }
        Thread.sleep(100);
      }
    }
  }

  private static final class Noop implements Client {
    @Override
    public CompletionStage<Object> call(List<byte[]> arguments, Integer key) {
      return CompletableFuture.completedFuture(null);
    }

    @Override
    public void close() {}
  }
}
