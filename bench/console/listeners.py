"""Open consoles without a browser: `python -m bench.console.listeners PORT COUNT` hears streams.

A process of its own, so that what it costs is not counted as the server's. It prints a line when
all streams are open, and ends when its input does; then it prints how many bytes and events came.
"""

import asyncio
import sys
from dataclasses import dataclass

EVENTS = "/dovetail/v1/map/events"


@dataclass(slots=True)
class Heard:
    size: int = 0
    changes: int = 0


async def listen(port: int, user: int, opened: asyncio.Semaphore, heard: Heard) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    # Each is another user: one alone may not have so many.
    head = f"GET {EVENTS} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nx-auth-token: user{user}\r\n\r\n"
    writer.write(head.encode())
    await reader.readuntil(b"event: hello")
    opened.release()
    while received := await reader.read(65_536):
        heard.size += len(received)
        heard.changes += received.count(b"event: change")


async def main(port: int, count: int) -> None:
    opened, heard = asyncio.Semaphore(0), Heard()
    tasks = [asyncio.create_task(listen(port, user, opened, heard)) for user in range(count)]
    for _ in tasks:
        await opened.acquire()
    print("open", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    ended = sum(task.done() for task in tasks)
    for task in tasks:
        task.cancel()
    print(heard.size, heard.changes, ended, flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
