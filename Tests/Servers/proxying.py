# SPDX-License-Identifier: Apache-2.0
"""What the proxies of the tests have in common: tunnels, and requests that are sent on."""
import http.client
import selectors
import socket
import urllib.parse


def address(target):
    """Every name is this machine."""
    return ("127.0.0.1", int(target.rpartition(":")[2]))


def tunnel(handler, headers=()):
    """Opens a tunnel for a CONNECT, and passes bytes on until one side ends."""
    try:
        origin = socket.create_connection(address(handler.path))
    except OSError:
        return handler.send_error(502)
    handler.send_response_only(200, "Connection established")
    for name, value in headers:
        handler.send_header(name, value)
    handler.end_headers()
    handler.close_connection = True
    sides = {handler.connection: origin, origin: handler.connection}
    with selectors.DefaultSelector() as selector, origin:
        for side in sides:
            selector.register(side, selectors.EVENT_READ)
        while True:
            ready = [key.fileobj for key, _ in selector.select()]
            # What TLS has read already is not seen by the selector.
            for side in ready:
                try:
                    piece = side.recv(65536)
                except OSError:
                    return
                if not piece:
                    return
                sides[side].sendall(piece)
                while getattr(side, "pending", lambda: 0)():
                    sides[side].sendall(side.recv(65536))


def forward(handler, body, headers=()):
    """Sends a request on, and its answer back."""
    target = urllib.parse.urlsplit(handler.path)
    connection = http.client.HTTPConnection(*address("%s:%d" % (target.hostname, target.port or 80)))
    own = {"proxy-authorization", "proxy-connection", "connection", "keep-alive", "transfer-encoding", "content-length"}
    fields = {name: value for name, value in handler.headers.items() if name.lower() not in own}
    connection.request(handler.command, target.path or "/", body or None, fields)
    answer = connection.getresponse()
    content = answer.read()
    handler.send_response_only(answer.status, answer.reason)
    for name, value in list(answer.getheaders()) + list(headers):
        if name.lower() not in own:
            handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)
    connection.close()
