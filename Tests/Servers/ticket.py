# SPDX-License-Identifier: Apache-2.0
"""A server, and a proxy, that takes tickets over TLS and says whether they are bound to that (RFC 5929).

    KRB5_KTNAME=KEYTAB python3 ticket.py PORT CERTIFICATE KEY

Checked by the GSSAPI of MIT itself. A proof that is bound to something else is refused; one that is bound to nothing is
taken, and told of.
"""
import base64
import ctypes
import hashlib
import http.server
import os
import ssl
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import proxying  # noqa: E402

gss = ctypes.CDLL("libgssapi_krb5.so.2")


class Buffer(ctypes.Structure):
    _fields_ = [("length", ctypes.c_size_t), ("value", ctypes.c_void_p)]


class Bindings(ctypes.Structure):
    _fields_ = [
        ("initiator_kind", ctypes.c_uint32), ("initiator", Buffer), ("acceptor_kind", ctypes.c_uint32),
        ("acceptor", Buffer), ("data", Buffer)]


def buffer(data):
    return Buffer(len(data), ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p))


def accept(token):
    """The user, the answer, and whether the proof is bound; None if it is refused."""
    minor, flags = ctypes.c_uint32(), ctypes.c_uint32()
    context, source = ctypes.c_void_p(), ctypes.c_void_p()
    said, answer, name = buffer(token), Buffer(), Buffer()
    status = gss.gss_accept_sec_context(
        ctypes.byref(minor), ctypes.byref(context), None, ctypes.byref(said), ctypes.byref(bindings),
        ctypes.byref(source), None, ctypes.byref(answer), ctypes.byref(flags), None, None)
    if status != 0:
        return None
    gss.gss_display_name(ctypes.byref(minor), source, ctypes.byref(name), None)
    user = ctypes.string_at(name.value, name.length).decode()
    # GSS_C_CHANNEL_BOUND_FLAG
    return user, ctypes.string_at(answer.value, answer.length), flags.value & 2048


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        proxy = self.command == "CONNECT" or self.path.startswith("http:")
        said = self.headers.get("proxy-authorization" if proxy else "authorization", "")
        asks = "Proxy-Authenticate" if proxy else "WWW-Authenticate"
        found = accept(base64.b64decode(said[10:])) if said.startswith("Negotiate ") else None
        if found is None:
            return self.reply(407 if proxy else 401, "who?\n", [(asks, "Negotiate")])
        user, answer, bound = found
        words = "%s %s\n" % (user, "bound" if bound else "not bound")
        fields = [(asks, "Negotiate " + base64.b64encode(answer).decode()), ("X-Proxy-User", words.strip())]
        if self.command == "CONNECT":
            return proxying.tunnel(self, fields)
        if proxy:
            return proxying.forward(self, body, fields)
        self.reply(200, words, fields)

    do_POST = do_PUT = do_HEAD = do_CONNECT = do_GET

    def reply(self, status, text, fields):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *words):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
with open(sys.argv[2]) as file:
    certificate = ssl.PEM_cert_to_DER_cert(file.read())
data = b"tls-server-end-point:" + hashlib.sha256(certificate).digest()
bindings = Bindings(0, Buffer(), 0, Buffer(), buffer(data))
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2], sys.argv[3])
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
