"""Delay: a network that takes its time: what a server says arrives so much later.

Where the kernel has no netem this stands for distance: many clients then wait at the same time, as
they would on machines of their own. Its own work is small beside the delay.
"""

import asyncio
import threading

PART_BYTES = 65536


class Delay:
    """Passes on what comes to `port` to the server's port, and its answers `seconds` later."""

    def __init__(self, server_port, seconds):
        self.port, self._to, self._seconds = 0, server_port, seconds
        self._loop, self._is_up = asyncio.new_event_loop(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        if not self._is_up.wait(10):
            raise OSError("the delaying network does not start")

    def close(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self):
        async def listen():
            server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            self._is_up.set()

        self._loop.run_until_complete(listen())
        self._loop.run_forever()
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self):
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _pass_on(self, client, to_client):
        server, to_server = await asyncio.open_connection("127.0.0.1", self._to)
        await asyncio.gather(self._copy(client, to_server, 0),
                             self._copy(server, to_client, self._seconds))

    async def _copy(self, source, sink, seconds):
        """In order: what came later is written later. Nothing waits for what came before it."""
        try:
            while part := await source.read(PART_BYTES):
                if seconds:
                    self._loop.call_later(seconds, sink.write, part)
                else:
                    sink.write(part)
        except OSError:
            pass
        finally:
            self._loop.call_later(seconds, sink.close)
