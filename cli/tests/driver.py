"""The smallest driver of docs/drivers.md: one plain connection, and one call after the other. For tests."""

import json
import os
import socket
import struct
import sys
import time
import zlib

HELLO, CONFIGURE, READY, FAILED, CALL, DONE, DRAIN, BYE = range(1, 9)


def connect(path):
    """Waits for the shard, which may listen later."""
    for _ in range(600):
        shard = socket.socket(socket.AF_UNIX)
        try:
            shard.connect(path)
            return shard
        except OSError:
            shard.close()
            time.sleep(0.1)
    sys.exit(f"no shard listens at {path}")


class Server:
    """A connection to a server."""

    def __init__(self, config):
        host, port = config["addresses"][0].rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)))
        self.replies = self.socket.makefile("rb")
        if "passwordFile" in config:
            with open(config["passwordFile"], "rb") as file:
                self.call([b"AUTH", file.read()])

    def call(self, arguments):
        """A reply's bytes, None of a null reply, or its error as an exception."""
        command = b"*%d\r\n" % len(arguments)
        self.socket.sendall(command + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in arguments))
        line = self.replies.readline().rstrip()
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind != b"$":
            return rest
        return None if rest == b"-1" else self.replies.read(int(rest) + 2)[:-2]

    def close(self):
        self.replies.close()
        self.socket.close()


def outcome(server, number, flags, arguments, times):
    reply, result, word = None, 0, b""
    called = time.monotonic_ns()
    try:
        for _ in range(times):
            reply = server.call(arguments)
    except RuntimeError as error:
        result, word = 1, str(error).split(" ")[0].encode()[:32]
    completed = time.monotonic_ns()
    checksum = zlib.crc32(reply) if flags & 1 and reply is not None else 0
    flags = flags & 1 | (2 if result == 0 and reply is None else 0)
    return struct.pack("<QQQIBBB", number, called, completed, checksum, flags, result, len(word)) + word


def main():
    if "--fail" in sys.argv:
        sys.exit("no library")
    if "--note" in sys.argv:
        with open(sys.argv[sys.argv.index("--note") + 1], "a", encoding="utf-8") as notes:
            notes.write("started\n")
    times = 2 if "--repeat" in sys.argv else 1
    shard = connect(os.environ["REDISBENCH_DRIVER_SOCKET"])
    frames, server = shard.makefile("rb"), None

    def send(kind, body=b""):
        shard.sendall(struct.pack("<IB", 1 + len(body), kind) + body)

    send(HELLO, json.dumps({"protocol": 1, "language": "Python", "library": "smallest", "version": "1"}).encode())
    while head := frames.read(5):
        length, kind = struct.unpack("<IB", head)
        body = frames.read(length - 1)
        if kind == CONFIGURE:
            try:
                server = Server(json.loads(body))
            except (OSError, RuntimeError) as error:
                send(FAILED, str(error).encode())
                continue
            send(READY, json.dumps({"connections": json.loads(body)["connections"]}).encode())
        elif kind == DRAIN:
            server.close()
            send(BYE)
        elif kind == CALL:
            if "--die" in sys.argv:
                sys.exit(3)
            at = 0
            while at < len(body):
                number, _, flags, count = struct.unpack_from("<QHBI", body, at)
                at += 15
                arguments = []
                for _ in range(count):
                    (size,) = struct.unpack_from("<I", body, at)
                    arguments.append(body[at + 4 : at + 4 + size])
                    at += 4 + size
                send(DONE, outcome(server, number, flags, arguments, times))


main()
