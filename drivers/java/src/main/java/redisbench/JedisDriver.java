package redisbench;

import java.net.SocketTimeoutException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import redis.clients.jedis.Connection;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;

/** A driver for Jedis: a thread per caller, over a pool of connections. */
record JedisDriver(UnifiedJedis library, int connections, ExecutorService callers) implements Driver.Client {
  static JedisDriver open(Driver.Config config) throws Exception {
    if (config.isShared()) {
      throw new IllegalArgumentException("Jedis holds a connection during a call: set sharing to Exclusive");
    }
    if (config.retries > 0 && !config.isCluster()) {
      throw new IllegalArgumentException("Jedis repeats calls of clusters alone: set retries to 0");
    }
    var pool = new ConnectionPoolConfig();
    pool.setMaxTotal(config.connections);
    pool.setMaxIdle(config.connections);
    pool.setMinIdle(config.connections);
    var settings =
        DefaultJedisClientConfig.builder()
            .user(Driver.secret(config.usernameFile))
            .password(Driver.secret(config.passwordFile))
            .database(config.database)
            .protocol(config.protocol == 3 ? RedisProtocol.RESP3 : RedisProtocol.RESP2)
            .connectionTimeoutMillis((int) config.connectTimeoutMilliseconds)
            .socketTimeoutMillis((int) config.responseTimeoutMilliseconds)
            .build();
    var address = HostAndPort.from(config.addresses.get(0));
    UnifiedJedis library;
    if (config.isCluster()) {
      // Redirects count as attempts.
      library =
          RedisClusterClient.builder()
              .nodes(Set.of(address))
              .clientConfig(settings)
              .poolConfig(pool)
              .maxAttempts(1 + config.retries)
              .build();
    } else {
      var client = RedisClient.builder().hostAndPort(address).clientConfig(settings).poolConfig(pool).build();
      library = client;
      var opened = new ArrayList<Connection>();
      try {
        while (opened.size() < config.connections) {
          opened.add(client.getPool().getResource());
        }
      } finally {
        opened.forEach(Connection::close);
      }
    }
    return new JedisDriver(library, config.connections, Executors.newFixedThreadPool(config.callers));
  }

  @Override
  public CompletionStage<Object> call(List<byte[]> arguments, Integer key) {
    var name = arguments.get(0);
    var rest = arguments.subList(1, arguments.size()).toArray(byte[][]::new);
    var reply =
        key == null || !(library instanceof RedisClusterClient)
            ? library.sendCommand(() -> name, rest)
            : library.sendCommand(arguments.get(key), () -> name, rest);
    return CompletableFuture.completedFuture(reply);
  }

  @Override
  public void close() {
    callers.shutdown();
    library.close();
  }

  private static Object outcome(Throwable error) {
    if (error instanceof JedisDataException) {
      return error.getMessage();
    } else if (error instanceof JedisConnectionException) {
      return error.getCause() instanceof SocketTimeoutException ? Driver.TIMEOUT : Driver.DISCONNECTED;
    }
    return Driver.LIBRARY;
  }

  public static void main(String[] arguments) throws Exception {
    Driver.run(arguments, "jedis", UnifiedJedis.class, JedisDriver::open, JedisDriver::outcome);
  }
}
