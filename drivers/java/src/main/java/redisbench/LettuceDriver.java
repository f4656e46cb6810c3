package redisbench;

import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.ClientOptions.DisconnectedBehavior;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisCommandTimeoutException;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SocketOptions;
import io.lettuce.core.StaticCredentialsProvider;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.api.async.RedisClusterAsyncCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.protocol.ProtocolVersion;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/** A driver for Lettuce's asynchronous API. Shared connections take calls in turn; exclusive ones are held during a call. */
final class LettuceDriver implements Driver.Client {
  private final AbstractRedisClient library;
  private final List<RedisClusterAsyncCommands<byte[], byte[]>> connections = new ArrayList<>();
  private final boolean isShared;
  private final AtomicInteger turn = new AtomicInteger();
  private final ArrayDeque<RedisClusterAsyncCommands<byte[], byte[]>> free = new ArrayDeque<>();
  private final ArrayDeque<CompletableFuture<RedisClusterAsyncCommands<byte[], byte[]>>> waiting = new ArrayDeque<>();

  private LettuceDriver(Driver.Config config) throws IOException {
    isShared = config.isShared();
    var options =
        ClientOptions.builder()
            .protocolVersion(config.protocol == 3 ? ProtocolVersion.RESP3 : ProtocolVersion.RESP2)
            .timeoutOptions(TimeoutOptions.enabled(Duration.ofMillis(config.responseTimeoutMilliseconds)))
            .socketOptions(
                SocketOptions.builder().connectTimeout(Duration.ofMillis(config.connectTimeoutMilliseconds)).build())
            .disconnectedBehavior(
                config.retries == 0 ? DisconnectedBehavior.REJECT_COMMANDS : DisconnectedBehavior.ACCEPT_COMMANDS)
            // The library repeats the calls of a lost connection, except for those that match.
            .replayFilter(command -> config.retries == 0)
            .build();
    var address = config.addresses.get(0);
    int colon = address.lastIndexOf(':');
    var server = RedisURI.create(address.substring(0, colon), Integer.parseInt(address.substring(colon + 1)));
    server.setTimeout(Duration.ofMillis(config.connectTimeoutMilliseconds));
    server.setDatabase(config.database);
    var password = Driver.secret(config.passwordFile);
    if (password != null) {
      var user = Driver.secret(config.usernameFile);
      server.setCredentialsProvider(new StaticCredentialsProvider(user, password.toCharArray()));
    }
    if (config.isCluster()) {
      var cluster = RedisClusterClient.create(server);
      cluster.setOptions(ClusterClientOptions.builder(options).build());
      library = cluster;
      connect(config.connections, () -> cluster.connect(ByteArrayCodec.INSTANCE).async());
    } else {
      var client = RedisClient.create(server);
      client.setOptions(options);
      library = client;
      connect(config.connections, () -> client.connect(ByteArrayCodec.INSTANCE).async());
    }
    free.addAll(connections);
  }

  private void connect(int count, Supplier<RedisClusterAsyncCommands<byte[], byte[]>> connect) {
    try {
      for (int index = 0; index < count; index++) {
        connections.add(connect.get());
      }
    } catch (RedisException error) {
      close();
      throw error;
    }
  }

  @Override
  public CompletionStage<Object> call(List<byte[]> arguments, Integer key) {
    if (isShared) {
      return send(connections.get(Math.floorMod(turn.getAndIncrement(), connections.size())), arguments, key);
    }
    return take().thenCompose(held -> send(held, arguments, key).whenComplete((reply, error) -> give(held)));
  }

  private static CompletionStage<Object> send(
      RedisClusterAsyncCommands<byte[], byte[]> connection, List<byte[]> arguments, Integer key) {
    var args = new CommandArgs<>(ByteArrayCodec.INSTANCE);
    for (int index = 1; index < arguments.size(); index++) {
      var ignored = key != null && index == key ? args.addKey(arguments.get(index)) : args.add(arguments.get(index));
    }
    return connection.dispatch(new Keyword(arguments.get(0)), new Reply(), args);
  }

  private synchronized CompletableFuture<RedisClusterAsyncCommands<byte[], byte[]>> take() {
    var held = free.poll();
    if (held != null) {
      return CompletableFuture.completedFuture(held);
    }
    var waits = new CompletableFuture<RedisClusterAsyncCommands<byte[], byte[]>>();
    waiting.add(waits);
    return waits;
  }

  private void give(RedisClusterAsyncCommands<byte[], byte[]> held) {
    CompletableFuture<RedisClusterAsyncCommands<byte[], byte[]>> next;
    synchronized (this) {
      next = waiting.poll();
      if (next == null) {
        free.add(held);
      }
    }
    if (next != null) {
      next.complete(held);
    }
  }

  @Override
  public int connections() {
    return connections.size();
  }

  @Override
  public void close() {
    library.shutdown(Duration.ZERO, Duration.ofSeconds(5));
  }

  /** Any reply: the library's own outputs each take some types. */
  private static final class Reply extends CommandOutput<byte[], byte[], Object> {
    private final ArrayDeque<List<Object>> open = new ArrayDeque<>();

    Reply() {
      super(ByteArrayCodec.INSTANCE, null);
    }

    private void add(Object value) {
      if (open.isEmpty()) {
        output = value;
      } else {
        open.peek().add(value);
      }
    }

    @Override
    public void set(ByteBuffer bytes) {
      add(bytes == null ? null : codec.decodeValue(bytes));
    }

    @Override
    public void set(long integer) {
      add(integer);
    }

    @Override
    public void set(double number) {
      add(number);
    }

    @Override
    public void set(boolean value) {
      add(value);
    }

    @Override
    public void multi(int count) {
      var elements = count < 0 ? null : new ArrayList<Object>(count);
      add(elements);
      if (elements != null) {
        open.push(elements);
      }
    }

    @Override
    public void complete(int depth) {
      // After each element of a collection, and after the collection.
      while (open.size() > depth) {
        open.pop();
      }
    }
  }

  private record Keyword(byte[] getBytes) implements ProtocolKeyword {}

  private static Object outcome(Throwable error) {
    if (error instanceof RedisCommandExecutionException) {
      return error.getMessage();
    } else if (error instanceof RedisCommandTimeoutException) {
      return Driver.TIMEOUT;
    } else if (error instanceof RedisException || error instanceof IOException) {
      return Driver.DISCONNECTED;
    }
    return Driver.LIBRARY;
  }

  public static void main(String[] arguments) throws Exception {
    Driver.run(arguments, "lettuce-core", RedisClient.class, LettuceDriver::new, LettuceDriver::outcome);
  }
}
