// A driver for node-redis. The library has no timeout for replies, so the driver ends calls itself.

import { RESP_TYPES, TimeoutError, createClient, createCluster } from "redis";

import { DISCONNECTED, LIBRARY, Reply, TIMEOUT, run, secret, spread } from "./driver.js";

const typeMapping = { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.SIMPLE_STRING]: Buffer, [RESP_TYPES.MAP]: Map };

async function open(config) {
  const socket = { connectTimeout: config.connectTimeoutMilliseconds };
  const options = {
    username: secret(config.usernameFile),
    password: secret(config.passwordFile),
    RESP: config.protocol,
    commandOptions: { typeMapping },
    disableOfflineQueue: config.retries === 0,
  };
  const isCluster = config.topology === "Cluster";
  const urls = config.addresses.map((address) => `redis://${address}`);
  let ready = false;
  const reconnectStrategy = (attempt, cause) => (ready ? Math.min(attempt * 10, 100) : cause);
  const connections = Array.from({ length: config.connections }, () =>
    isCluster
      ? createCluster({ rootNodes: urls.map((url) => ({ url })), defaults: { ...options, socket } })
      : createClient({ ...options, url: urls[0], database: config.database, socket: { ...socket, reconnectStrategy } }),
  );
  for (const connection of connections) connection.on("error", () => {});
  try {
    await Promise.all(connections.map((connection) => connection.connect()));
  } catch (error) {
    for (const connection of connections) if (connection.isOpen) connection.destroy();
    throw error;
  }
  ready = true;
  const send = isCluster
    ? (connection, args, key) => connection.sendCommand(key === undefined ? undefined : args[key], false, args)
    : (connection, args) => connection.sendCommand(args);
  const inTime = (connection, args, key) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new TimeoutError()), config.responseTimeoutMilliseconds);
      send(connection, args, key).then(resolve, reject).finally(() => clearTimeout(timer));
    });
  return {
    connections: connections.length,
    call: spread(connections, config.sharing, inTime),
    close: async () => connections.forEach((connection) => connection.destroy()),
  };
}

function classify(error) {
  const { name } = error.constructor;
  if (name === "SimpleError" || name === "BlobError" || name === "ErrorReply") return new Reply(error.message);
  if (error instanceof TimeoutError) return TIMEOUT;
  if (/Disconnect|Socket|Closed|Offline|Abort/.test(name) || error.code) return DISCONNECTED;
  return LIBRARY;
}

run("redis", open, classify);
