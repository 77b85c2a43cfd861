# SPDX-License-Identifier: Apache-2.0
"""An origin for what nginx and Apache cannot be told to send. Written for tests: one thread per
connection, exact bytes, no library in between.

    python3 origin.py PORT
"""
import os
import socket
import socketserver
import sys
import time
import zlib


def read_head(stream):
    lines = []
    while True:
        line = stream.readline(65536)
        if not line or line == b"\r\n":
            return lines
        lines.append(line.rstrip(b"\r\n"))


def read_body(stream, fields):
    if fields.get(b"transfer-encoding") == b"chunked":
        body = b""
        while True:
            size = int(stream.readline().split(b";")[0], 16)
            body += stream.read(size)
            stream.readline()
            if size == 0:
                return body
    return stream.read(int(fields.get(b"content-length", 0)))


def chunked(pieces, trailers=()):
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces if piece)
    return body + b"0\r\n" + b"".join(line + b"\r\n" for line in trailers) + b"\r\n"


class Handler(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self):
        while True:
            head = read_head(self.rfile)
            if not head:
                return
            method, target, _ = head[0].split(b" ", 2)
            fields = dict((n.strip().lower(), v.strip()) for n, v in (line.split(b":", 1) for line in head[1:]))
            if fields.get(b"expect", b"").lower() == b"100-continue":
                self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = read_body(self.rfile, fields)
            if not self.answer(method, target.split(b"?")[0].decode(), fields, body):
                return

    def answer(self, method, path, fields, body):
        """Returns whether the connection goes on."""
        write = self.wfile.write
        if path == "/trailers":
            write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Checksum\r\n\r\n")
            write(chunked([b"first ", b"second ", b"third"], [b"X-Checksum: 12345", b"X-Done: yes"]))
        elif path == "/interim":
            write(b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
            write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")
        elif path == "/echo":
            write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-Method: %s\r\nX-Type: %s\r\n\r\n%s"
                  % (len(body), method, fields.get(b"content-type", b"-"), body))
        elif path == "/count":
            text = b"%d" % len(body)
            write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
        elif path == "/deflate":
            packed = zlib.compress(b"deflated " * 1000)
            head = b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\nContent-Length: %d\r\n\r\n" % len(packed)
            write(head + packed)
        elif path == "/badgzip":
            write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 10\r\n\r\nnot gzip!!")
        elif path == "/short":
            write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this")
            return False
        elif path == "/late":
            time.sleep(0.4)
            write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate")
        elif path == "/close":
            write(b"HTTP/1.1 200 OK\r\n\r\nuntil the end")
            return False
        elif path == "/silent":
            self.connection.settimeout(30)
            self.wait()
            return False
        elif path == "/stall":
            write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbeginning")
            self.wait()
            return False
        elif path == "/garbage":
            write(b"220 mail.example ESMTP\r\n")
            return False
        elif path == "/reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            # Not by shutdown, which would end the stream properly first.
            os.close(self.connection.detach())
            return False
        elif path == "/control":
            write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n\x1b[31m\x00\xff")
        else:
            write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        return True

    def wait(self):
        """Until the client has gone, at most 30 seconds."""
        self.connection.settimeout(30)
        try:
            self.connection.recv(1)
        except OSError:
            time.sleep(0)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request, client_address):
        """A client that goes away is no event."""


if __name__ == "__main__":
    with Server(("127.0.0.1", int(sys.argv[1])), Handler) as server:
        server.serve_forever()
