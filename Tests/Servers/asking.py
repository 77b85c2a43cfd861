# SPDX-License-Identifier: Apache-2.0
"""A server of TLS 1.3 that asks who a client is when it has seen what he wants (RFC 8446 4.6.2).

    python3 asking.py PORT CERTIFICATE KEY ROOTS

At /now it asks before it answers, with 102 and, where it is expected, 100 in between; at /idle after its answer. With
X-Answers: ada it waits until it knows who that is.
"""
import socket
import ssl
import sys
import threading
import time

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2], sys.argv[3])
context.load_verify_locations(sys.argv[4])
context.minimum_version = ssl.TLSVersion.TLSv1_3
context.post_handshake_auth = True
context.verify_mode = ssl.CERT_OPTIONAL


def take(connection, count, held=b""):
    while len(held) < count:
        piece = connection.recv(4096)
        if not piece:
            raise EOFError
        held += piece
    return held


def head(connection, held):
    while b"\r\n\r\n" not in held:
        held = take(connection, len(held) + 1, held)
    text, _, rest = held.partition(b"\r\n\r\n")
    return text.decode().lower(), rest


def ask(connection):
    connection.verify_client_post_handshake()
    connection.do_handshake()
    # The question is in the same flight as what is written next.
    connection.sendall(b"HTTP/1.1 102 Processing\r\n\r\n")


def hear(connection):
    """The answer may have come behind a body that was sent at once: it is heard when more is read."""
    held = b""
    connection.settimeout(0.05)
    for _ in range(400):
        if connection.getpeercert():
            break
        try:
            held += connection.recv(4096)
        except TimeoutError:
            pass
    connection.settimeout(None)
    return held


def serve(connection):
    try:
        connection = context.wrap_socket(connection, server_side=True)
        rest = b""
        while True:
            text, rest = head(connection, rest)
            path = text.split(" ")[1]
            if path == "/now":
                ask(connection)
                time.sleep(0.05)
            if "100-continue" in text:
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            length = int((text.partition("content-length: ")[2] or "0").split("\r\n")[0])
            rest = take(connection, length, rest)
            body, rest = rest[:length], rest[length:]
            if "x-answers: ada" in text:
                rest += hear(connection)
            subject = (connection.getpeercert() or {}).get("subject", ((("commonName", "nobody"),),))
            words = "%s %d\n" % (subject[0][0][1], len(body))
            connection.sendall(("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(words), words)).encode())
            if path == "/idle":
                connection.verify_client_post_handshake()
                connection.do_handshake()
    except (EOFError, OSError):
        pass
    finally:
        connection.close()


server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("127.0.0.1", int(sys.argv[1])))
server.listen(64)
while True:
    accepted, _ = server.accept()
    threading.Thread(target=serve, args=(accepted,), daemon=True).start()
