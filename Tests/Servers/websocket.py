# SPDX-License-Identifier: Apache-2.0
"""WebSocket servers of several libraries; all echo messages.

    websocket.py MODULES websockets PORT        and /leave, /count, /ping; subprotocol chat.v2; compression
    websocket.py MODULES wsproto PORT           compression
    websocket.py MODULES hypercorn PORT PORT CERTIFICATE KEY
                                                over TLS, HTTP/2 (RFC 8441) and HTTP/1.1; then without TLS;
                                                GET returns "here"
"""
import asyncio
import socket
import sys
import threading

sys.path.insert(0, sys.argv[1])


def serve_websockets(port):
    from websockets.asyncio.server import serve

    async def talk(connection):
        path = connection.request.path
        if path == "/leave":
            return await connection.close(4000, "as said")
        if path == "/count":
            for number in range(1, 4):
                await connection.send(str(number))
            return
        if path == "/ping":
            await (await connection.ping(b"are you there"))
            return await connection.send("answered")
        async for message in connection:
            await connection.send(message)

    def choose(connection, offered):
        return "chat.v2" if "chat.v2" in offered else None

    async def run():
        async with serve(talk, "127.0.0.1", port, select_subprotocol=choose, max_size=64 << 20) as server:
            await server.serve_forever()

    asyncio.run(run())


def serve_wsproto(port):
    from wsproto import ConnectionType, WSConnection
    from wsproto.events import AcceptConnection, CloseConnection, Message, Ping, Request
    from wsproto.extensions import PerMessageDeflate

    def talk(stream):
        connection, kept = WSConnection(ConnectionType.SERVER), []
        with stream:
            while True:
                data = stream.recv(65536)
                connection.receive_data(data or None)
                for event in connection.events():
                    if isinstance(event, Request):
                        answer = AcceptConnection(extensions=[PerMessageDeflate()])
                    elif isinstance(event, Message):
                        kept.append(event.data)
                        if not event.message_finished:
                            continue
                        answer = Message(data=type(event.data)().join(kept))
                        kept.clear()
                    elif isinstance(event, (Ping, CloseConnection)):
                        answer = event.response()
                    else:
                        continue
                    stream.sendall(connection.send(answer))
                    if isinstance(event, CloseConnection):
                        return
                if not data:
                    return

    with socket.create_server(("127.0.0.1", port), backlog=64) as listener:
        while True:
            threading.Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()


def serve_hypercorn(port, clear, certificate, key):
    from hypercorn.asyncio import serve
    from hypercorn.config import Config

    async def application(scope, receive, send):
        if scope["type"] == "lifespan":
            while True:
                event = await receive()
                await send({"type": event["type"] + ".complete"})
                if event["type"] == "lifespan.shutdown":
                    return
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            return await send({"type": "http.response.body", "body": b"here"})
        await receive()
        if scope["path"] == "/closed":
            return await send({"type": "websocket.close", "code": 1000})
        version = scope["http_version"].encode()
        await send({"type": "websocket.accept", "subprotocol": None, "headers": [(b"x-version", version)]})
        while True:
            event = await receive()
            if event["type"] != "websocket.receive":
                return
            if event.get("text") == "leave":
                return await send({"type": "websocket.close", "code": 4000})
            await send({"type": "websocket.send", "bytes": event.get("bytes"), "text": event.get("text")})

    config = Config()
    config.bind, config.insecure_bind = [f"localhost:{port}"], [f"127.0.0.1:{clear}"]
    config.certfile, config.keyfile = certificate, key
    config.websocket_max_message_size = 64 << 20
    # On a busy machine the first request of a connection may take long.
    config.keep_alive_timeout = 600
    config.loglevel = "ERROR"
    asyncio.run(serve(application, config))


which, rest = sys.argv[2], sys.argv[3:]
if which == "hypercorn":
    serve_hypercorn(int(rest[0]), int(rest[1]), rest[2], rest[3])
else:
    {"websockets": serve_websockets, "wsproto": serve_wsproto}[which](int(rest[0]))
