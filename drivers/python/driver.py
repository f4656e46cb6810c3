"""Speaks the contract of docs/drivers.md, so that a driver only calls its library."""

import asyncio
import importlib.metadata
import json
import os
import struct
import sys
import zlib
from time import monotonic_ns

HELLO, CONFIGURE, READY, FAILED, CALL, DONE, DRAIN, BYE = range(1, 9)
SUCCESS, ERROR_REPLY, TIMEOUT, DISCONNECTED, LIBRARY = range(5)
CHECKSUM, NULL = 1, 2

call_head, outcome_head, length = struct.Struct("<QHBI"), struct.Struct("<QQQIBBB"), struct.Struct("<I")


class ErrorReply(Exception):
    """An error that a server replied with; its text."""


class Noop:
    async def call(self, arguments, key):
        return None

    async def close(self):
        pass


def secret(path):
    """The content of a file, or None without one."""
    if path is None:
        return None
    with open(path, encoding="utf-8") as file:
        return file.read()


def touch(reply):
    """The sum of the checksums of all strings and integers."""
    if isinstance(reply, bytes):
        return zlib.crc32(reply)
    if isinstance(reply, str):
        return zlib.crc32(reply.encode())
    if isinstance(reply, int) and not isinstance(reply, bool):
        return zlib.crc32(b"%d" % reply)
    if isinstance(reply, dict):
        return sum(touch(key) + touch(value) for key, value in reply.items())
    if isinstance(reply, (list, tuple, set)):
        return sum(map(touch, reply))
    return 0


class Session:
    def __init__(self, reader, writer, open_client, classify):
        self.reader, self.writer, self.open_client, self.classify = reader, writer, open_client, classify
        self.client, self.keys, self.calls, self.outcomes = None, [], set(), []

    def send(self, kind, body=b""):
        self.writer.write(length.pack(1 + len(body)) + bytes([kind]) + body)

    async def serve(self):
        """Serves the shard until it closes the socket."""
        while True:
            try:
                head = await self.reader.readexactly(5)
                body = await self.reader.readexactly(length.unpack_from(head)[0] - 1)
            except (asyncio.IncompleteReadError, ConnectionResetError):
                return
            if head[4] == CALL:
                self.begin(body)
            elif head[4] == CONFIGURE:
                await self.configure(json.loads(body))
            elif head[4] == DRAIN:
                if self.calls:
                    await asyncio.wait(self.calls)
                self.flush()
                await self.client.close()
                self.send(BYE)

    async def configure(self, config):
        self.keys = [operation.get("key") for operation in config["operations"]]
        try:
            self.client, connections = await self.open_client(config)
        except Exception as error:
            return self.send(FAILED, str(error).encode())
        self.send(READY, json.dumps({"connections": connections}).encode())

    def begin(self, body):
        at = 0
        while at < len(body):
            number, operation, flags, count = call_head.unpack_from(body, at)
            at += call_head.size
            arguments = []
            for _ in range(count):
                (size,) = length.unpack_from(body, at)
                arguments.append(body[at + 4 : at + 4 + size])
                at += 4 + size
            task = asyncio.create_task(self.call(number, self.keys[operation], flags, arguments))
            self.calls.add(task)
            task.add_done_callback(self.calls.discard)

    async def call(self, number, key, flags, arguments):
        reply, result, word = None, SUCCESS, b""
        called = monotonic_ns()
        try:
            reply = await self.client.call(arguments, key)
        except ErrorReply as error:
            result, word = ERROR_REPLY, str(error).split(" ", 1)[0].encode()[:32]
        except Exception as error:
            result, word = self.classify(error), b""
            if result == LIBRARY:
                word = type(error).__name__.encode()[:32]
        completed = monotonic_ns()
        checksum = touch(reply) & 0xFFFFFFFF if flags & CHECKSUM else 0
        flags = flags & CHECKSUM | (NULL if reply is None and result == SUCCESS else 0)
        if not self.outcomes:
            asyncio.get_running_loop().call_soon(self.flush)
        self.outcomes.append(outcome_head.pack(number, called, completed, checksum, flags, result, len(word)) + word)

    def flush(self):
        """Sends all outcomes of this turn of the loop in one frame."""
        if self.outcomes:
            self.send(DONE, b"".join(self.outcomes))
            self.outcomes.clear()


async def connect(path):
    """Waits for the shard, which may start later."""
    for _ in range(600):
        try:
            return await asyncio.open_unix_connection(path, limit=1 << 20)
        except (FileNotFoundError, ConnectionRefusedError):
            await asyncio.sleep(0.1)
    raise SystemExit(f"driver: no shard listens at {path}")


def run(library, open_client, classify):
    """open_client makes all connections, and returns a client and their number. classify gives the outcome of an exception."""

    async def noop(config):
        return Noop(), 0

    async def main():
        reader, writer = await connect(os.environ["REDISBENCH_DRIVER_SOCKET"])
        session = Session(reader, writer, noop if "--noop" in sys.argv[1:] else open_client, classify)
        version = importlib.metadata.version(library)
        hello = {"protocol": 1, "language": "Python", "library": library, "version": version}
        session.send(HELLO, json.dumps(hello).encode())
        await session.serve()

    asyncio.run(main())
