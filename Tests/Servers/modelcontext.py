# SPDX-License-Identifier: Apache-2.0
"""A server of the Model Context Protocol (streamable HTTP), by its Python library `mcp`.

    modelcontext.py MODULES PORT

/events/1 to /events/5 answer calls with server-sent events that can be resumed, /json with JSON. There are several of
the former because the library names a stream by its call alone: what it has stored for two sessions cannot be told
apart. Tools:
    add(a, b)        the sum
    count(to)        reports progress `to` times, and returns the last number
    cut(to)          the same, but closes its stream after each report, makes the next one while the client is away, and
                     goes on when the client is back
    wait(name)       never returns; a cancellation is recorded
    waits(name)      "none", "waiting" or "cancelled"
    announce(times)  sends a notification of its own to the client so many times, and closes that stream after each
"""
import asyncio
import contextlib
import sys

sys.path.insert(0, sys.argv[1])

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.streamable_http import EventMessage, EventStore
from starlette.applications import Starlette
from starlette.routing import Mount


class Events(EventStore):
    """All events, with their streams; an event's identifier is its place."""

    def __init__(self):
        self.events = []

    async def store_event(self, stream_id, message):
        self.events.append((stream_id, message))
        return str(len(self.events))

    async def opened(self, stream_id, times):
        """Returns when a stream has been opened so many times: each begins with an event without a message, by which
        the library says that it is there. An event that is stored between a replay and this one never reaches the
        client: the library knows of the gap (streamable_http.py, `_replay_events`), and a server has to keep out of it.
        """
        while sum(of == stream_id and message is None for of, message in self.events) < times:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)

    async def replay_events_after(self, last_event_id, send_callback):
        place = int(last_event_id)
        stream = self.events[place - 1][0]
        for number, (of, message) in enumerate(list(self.events[place:]), place + 1):
            if of == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


def make(events):
    server, states = MCPServer("peer"), {}

    @server.tool()
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool()
    async def count(to: int, ctx: Context) -> int:
        for number in range(1, to + 1):
            await ctx.report_progress(number, to)
        return to

    @server.tool()
    async def cut(to: int, ctx: Context) -> int:
        stream = str(ctx.request_id)
        opened = sum(of == stream and message is None for of, message in events.events)
        for number in range(1, to + 1):
            await ctx.report_progress(number, to)
            await events.opened(stream, opened + number - 1)
            await ctx.close_sse_stream()
        await events.opened(stream, opened + to)
        return to

    @server.tool()
    async def wait(name: str, ctx: Context) -> str:
        states[name] = "waiting"
        await ctx.report_progress(0)
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            states[name] = "cancelled"
            raise
        return "waited"

    @server.tool()
    def waits(name: str) -> str:
        return states.get(name, "none")

    @server.tool()
    async def announce(times: int, ctx: Context) -> int:
        for _ in range(times):
            await ctx.session.send_tool_list_changed()
            await asyncio.sleep(0.05)
            await ctx.close_standalone_sse_stream()
        return times

    return server


async def serve(port):
    servers = {f"/events/{number}": {"event_store": Events(), "retry_interval": 10} for number in range(1, 6)}
    servers["/json"] = {"json_response": True}
    made = {path: make(options.get("event_store")) for path, options in servers.items()}
    apps = [
        Mount(path, made[path].streamable_http_app(streamable_http_path="/", **options))
        for path, options in servers.items()
    ]

    @contextlib.asynccontextmanager
    async def lifespan(_):
        async with contextlib.AsyncExitStack() as stack:
            for server in made.values():
                await stack.enter_async_context(server.session_manager.run())
            yield

    application = Starlette(routes=apps, lifespan=lifespan)
    config = uvicorn.Config(application, "127.0.0.1", port, log_level="error", timeout_graceful_shutdown=1)
    await uvicorn.Server(config).serve()


asyncio.run(serve(int(sys.argv[2])))
