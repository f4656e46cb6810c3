// A driver for ioredis.

import { Cluster, Redis } from "ioredis";

import { DISCONNECTED, LIBRARY, Reply, TIMEOUT, run, secret, spread } from "./driver.js";

async function open(config) {
  const options = {
    username: secret(config.usernameFile),
    password: secret(config.passwordFile),
    db: config.database,
    protocol: config.protocol,
    connectTimeout: config.connectTimeoutMilliseconds,
    commandTimeout: config.responseTimeoutMilliseconds,
    maxRetriesPerRequest: config.retries,
    autoResendUnfulfilledCommands: config.retries > 0,
    enableOfflineQueue: config.retries > 0,
    lazyConnect: true,
  };
  const nodes = config.addresses.map((address) => {
    const [, host, port] = address.match(/^\[?(.*?)\]?:(\d+)$/);
    return { host, port: Number(port) };
  });
  const connections = Array.from({ length: config.connections }, () =>
    config.topology === "Cluster"
      ? new Cluster(nodes, { redisOptions: options, lazyConnect: true })
      : new Redis({ ...options, ...nodes[0] }),
  );
  let cause;
  try {
    // The cause of a failed connect arrives as an event.
    for (const connection of connections) connection.on("error", (error) => (cause = error));
    await Promise.all(connections.map((connection) => connection.connect()));
  } catch (error) {
    for (const connection of connections) connection.disconnect();
    throw cause ?? error;
  }
  return {
    connections: connections.length,
    call: spread(connections, config.sharing, (connection, [name, ...args]) => connection.callBuffer(name.toString(), args)),
    close: async () => connections.forEach((connection) => connection.disconnect()),
  };
}

function classify(error) {
  if (error.name === "ReplyError") return new Reply(error.message);
  if (error.message === "Command timed out") return TIMEOUT;
  if (error.name === "MaxRetriesPerRequestError" || /closed|writeable|ECONN|EPIPE/.test(error.message)) return DISCONNECTED;
  return LIBRARY;
}

run("ioredis", open, classify);
