"""A server with NTLM, checked by pyspnego: whoever opens a connection with it is known on it.

    python3 ntlm.py PORT PACKAGES USERS [CERTIFICATE KEY]

PACKAGES is the directory that pyspnego is in, USERS a file of lines DOMAIN:USER:PASSWORD. With a certificate it speaks
TLS, and binds each proof to it.
"""
import base64
import http.server
import os
import ssl
import sys

sys.path.insert(0, sys.argv[2])
os.environ["NTLM_USER_FILE"] = sys.argv[3]

import cryptography.hazmat.primitives.hashes as hashes  # noqa: E402
import cryptography.x509  # noqa: E402
import spnego  # noqa: E402
import spnego.channel_bindings  # noqa: E402

bindings = None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    context = None
    user = None

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        said = self.headers.get("authorization", "")
        if said.startswith("NTLM "):
            return self.step(base64.b64decode(said[5:]), body)
        if self.user:
            return self.reply(200, "%s %d\n" % (self.user, len(body)))
        self.reply(401, "who?\n", "NTLM")

    do_POST = do_PUT = do_HEAD = do_GET

    def step(self, token, body):
        if self.context is None:
            self.context = spnego.server(
                protocol="ntlm", options=spnego.NegotiateOptions.use_ntlm, channel_bindings=bindings)
        try:
            out = self.context.step(token)
        except spnego.exceptions.SpnegoError as error:
            self.context = None
            return self.reply(401, "%s\n" % error, "NTLM")
        if not self.context.complete:
            return self.reply(401, "go on\n", "NTLM " + base64.b64encode(out).decode())
        self.user, self.context = str(self.context.client_principal), None
        self.reply(200, "%s %d\n" % (self.user, len(body)))

    def reply(self, status, text, asks=None):
        self.send_response(status)
        if asks:
            self.send_header("WWW-Authenticate", asks)
        text = text.encode()
        self.send_header("Content-Length", str(len(text)))
        self.send_header("X-Connection", str(self.client_address[1]))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def log_message(self, *words):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
if len(sys.argv) > 4:
    with open(sys.argv[4], "rb") as file:
        certificate = cryptography.x509.load_pem_x509_certificate(file.read())
    bindings = spnego.channel_bindings.GssChannelBindings(
        application_data=b"tls-server-end-point:" + certificate.fingerprint(hashes.SHA256()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[4], sys.argv[5])
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
