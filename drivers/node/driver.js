// Speaks the contract of docs/drivers.md, so that a driver only calls its library.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createConnection } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { crc32 } from "node:zlib";

const [HELLO, CONFIGURE, READY, FAILED, CALL, DONE, DRAIN, BYE] = [1, 2, 3, 4, 5, 6, 7, 8];
const [SUCCESS, ERROR_REPLY] = [0, 1];
export const [TIMEOUT, DISCONNECTED, LIBRARY] = [2, 3, 4];
const [CHECKSUM, NULL] = [1, 2];

const noop = async () => ({ connections: 0, call: async () => null, close: async () => {} });

/** The content of a file, or undefined without one. */
export const secret = (path) => (path === undefined ? undefined : readFileSync(path, "utf8"));

/** A client over some connections that calls `send(connection, arguments)`. Exclusive connections are held during a call. */
export function spread(connections, sharing, send) {
  if (sharing === "Shared") {
    let turn = 0;
    return (args, key) => send(connections[turn++ % connections.length], args, key);
  }
  const free = [...connections];
  const waiting = [];
  return async (args, key) => {
    const connection = free.pop() ?? (await new Promise((resolve) => waiting.push(resolve)));
    try {
      return await send(connection, args, key);
    } finally {
      const next = waiting.shift();
      next ? next(connection) : free.push(connection);
    }
  };
}

/** The sum of the checksums of all strings and integers. */
function touch(reply) {
  if (Buffer.isBuffer(reply) || typeof reply === "string") return crc32(reply);
  if (typeof reply === "number" || typeof reply === "bigint") return crc32(`${reply}`);
  if (Array.isArray(reply) || reply instanceof Set) return [...reply].reduce((sum, element) => sum + touch(element), 0) >>> 0;
  if (reply instanceof Map) return touch([...reply]);
  if (reply !== null && typeof reply === "object") return touch(Object.entries(reply));
  return 0;
}

/** Serves the shard until it closes the socket. `open` makes all connections; `classify` gives the outcome of an error. */
export async function run(library, open, classify) {
  if (process.argv.includes("--noop")) open = noop;
  const socket = await connect(process.env.REDISBENCH_DRIVER_SOCKET);
  const version = createRequire(import.meta.url)(`${library}/package.json`).version;
  const inFlight = new Set();
  let client, keys;
  let outcomes = [];

  const send = (kind, body = Buffer.alloc(0)) => {
    const head = Buffer.alloc(5);
    head.writeUInt32LE(1 + body.length);
    head[4] = kind;
    socket.write(Buffer.concat([head, body]));
  };

  /** Sends all outcomes of this turn of the loop in one frame. */
  const flush = () => {
    if (outcomes.length > 0) send(DONE, Buffer.concat(outcomes));
    outcomes = [];
  };

  const configure = async (config) => {
    keys = config.operations.map((operation) => operation.key);
    try {
      client = await open(config);
    } catch (error) {
      return send(FAILED, Buffer.from(error.message));
    }
    send(READY, Buffer.from(JSON.stringify({ connections: client.connections })));
  };

  const call = async (id, key, flags, args) => {
    let reply = null;
    let result = SUCCESS;
    let word = "";
    const called = process.hrtime.bigint();
    try {
      reply = await client.call(args, key);
    } catch (error) {
      result = classify(error);
      if (result instanceof Reply) [result, word] = [ERROR_REPLY, result.text.split(" ", 1)[0]];
      else if (result === LIBRARY) word = error.name || "Error";
    }
    const completed = process.hrtime.bigint();
    word = Buffer.from(word).subarray(0, 32);
    const outcome = Buffer.alloc(31 + word.length);
    outcome.writeBigUInt64LE(id);
    outcome.writeBigUInt64LE(called, 8);
    outcome.writeBigUInt64LE(completed, 16);
    outcome.writeUInt32LE(flags & CHECKSUM ? touch(reply) : 0, 24);
    outcome[28] = (flags & CHECKSUM) | (reply === null && result === SUCCESS ? NULL : 0);
    outcome[29] = result;
    outcome[30] = word.length;
    word.copy(outcome, 31);
    if (outcomes.length === 0) setImmediate(flush);
    outcomes.push(outcome);
  };

  const begin = (body) => {
    for (let at = 0; at < body.length; ) {
      const [id, operation, flags] = [body.readBigUInt64LE(at), body.readUInt16LE(at + 8), body[at + 10]];
      const args = new Array(body.readUInt32LE(at + 11));
      at += 15;
      for (let index = 0; index < args.length; index++) {
        const end = at + 4 + body.readUInt32LE(at);
        args[index] = body.subarray(at + 4, end);
        at = end;
      }
      const started = call(id, keys[operation], flags, args).then(() => inFlight.delete(started));
      inFlight.add(started);
    }
  };

  send(HELLO, Buffer.from(JSON.stringify({ protocol: 1, language: "JavaScript", library, version })));
  for await (const [kind, body] of frames(socket)) {
    if (kind === CALL) begin(body);
    else if (kind === CONFIGURE) await configure(JSON.parse(body));
    else if (kind === DRAIN) {
      await Promise.all(inFlight);
      flush();
      await client.close();
      send(BYE);
    }
  }
  process.exit(0);
}

/** An error that a server replied with. */
export class Reply {
  constructor(text) {
    this.text = text;
  }
}

async function* frames(socket) {
  let pieces = [];
  let held = 0;
  for await (const piece of socket) {
    pieces.push(piece);
    held += piece.length;
    // Large frames come in many pieces, which are joined once.
    if (pieces.length > 1 && held >= 4 && pieces[0].length >= 4 && held < 4 + pieces[0].readUInt32LE()) continue;
    let buffer = pieces.length === 1 ? pieces[0] : Buffer.concat(pieces);
    while (buffer.length >= 4 && buffer.length >= 4 + buffer.readUInt32LE()) {
      const end = 4 + buffer.readUInt32LE();
      yield [buffer[4], buffer.subarray(5, end)];
      buffer = buffer.subarray(end);
    }
    pieces = buffer.length > 0 ? [buffer] : [];
    held = buffer.length;
  }
}

/** Waits for the shard, which may start later. */
async function connect(path) {
  for (let attempt = 0; ; attempt++) {
    const socket = createConnection(path);
    try {
      await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
      return socket;
    } catch (error) {
      if (attempt === 600) throw error;
      await sleep(100);
    }
  }
}
