# Forwards a port to another on this host: delays what clients send, but not the replies.
# Run as: lag.py LISTEN FORWARD SECONDS
import asyncio
import sys
import time

listen, forward, delay = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])


async def late(reader, writer):
    queue = asyncio.Queue()

    async def take():
        data = True
        while data:
            data = await reader.read(65536)
            queue.put_nowait((time.monotonic() + delay, data))

    taking = asyncio.ensure_future(take())
    while True:
        at, data = await queue.get()
        await asyncio.sleep(max(0, at - time.monotonic()))
        if not data:
            break
        writer.write(data)
        await writer.drain()
    await taking
    writer.close()


async def at_once(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def serve(reader, writer):
    try:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", forward)
    except OSError:
        writer.close()
        return
    await asyncio.gather(late(reader, inner_writer), at_once(inner_reader, writer), return_exceptions=True)


async def main():
    server = await asyncio.start_server(serve, "0.0.0.0", listen)
    print("ready", flush=True)
    async with server:
        await server.serve_forever()


asyncio.run(main())
