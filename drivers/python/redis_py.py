"""A driver for redis-py's asyncio clients."""

import asyncio

import driver
from redis import exceptions
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.cluster import RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff


class Client:
    def __init__(self, library):
        self.library = library
        # Replies as the server gave them.
        library.response_callbacks = {}

    async def call(self, arguments, key):
        try:
            return await self.library.execute_command(*arguments)
        except exceptions.ResponseError as error:
            # The library cuts off the first words that it knows.
            raise driver.ErrorReply(error.status_code or str(error)) from error

    async def close(self):
        await self.library.aclose()
        if isinstance(self.library, Redis):
            # A client leaves a pool alone that it did not make.
            await self.library.connection_pool.aclose()


def classify(error):
    if isinstance(error, (exceptions.TimeoutError, asyncio.TimeoutError)):
        return driver.TIMEOUT
    if isinstance(error, (exceptions.ConnectionError, OSError)):
        return driver.DISCONNECTED
    return driver.LIBRARY


async def open_client(config):
    if config["sharing"] == "Shared":
        raise ValueError("redis-py holds a connection during a call: set sharing to Exclusive")
    count = config["connections"]
    options = {
        "username": driver.secret(config.get("usernameFile")),
        "password": driver.secret(config.get("passwordFile")),
        "protocol": config["protocol"],
        "socket_timeout": config["responseTimeoutMilliseconds"] / 1000,
        "socket_connect_timeout": config["connectTimeoutMilliseconds"] / 1000,
        "retry": Retry(NoBackoff(), config["retries"]),
    }
    host, port = config["addresses"][0].rsplit(":", 1)
    if config["topology"] == "Cluster":
        library = RedisCluster(host=host.strip("[]"), port=int(port), max_connections=count, **options)
        await library.initialize()
        return Client(library), count
    pool = BlockingConnectionPool(
        host=host.strip("[]"), port=int(port), db=config["database"], max_connections=count,
        timeout=config["responseTimeoutMilliseconds"] / 1000, **options,
    )
    connections = [await pool.get_connection() for _ in range(count)]
    for connection in connections:
        await pool.release(connection)
    return Client(Redis(connection_pool=pool)), count


if __name__ == "__main__":
    driver.run("redis", open_client, classify)
