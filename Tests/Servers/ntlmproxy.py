"""A proxy with NTLM, checked by pyspnego: whoever opens a connection with it is let through on it.

    python3 ntlmproxy.py PORT PACKAGES USERS [CERTIFICATE KEY]

As in ntlm.py; with a certificate it is spoken to over TLS, and binds each proof to that. Names all lead to this machine.
"""
import base64
import http.server
import os
import ssl
import sys

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), sys.argv[2]]
os.environ["NTLM_USER_FILE"] = sys.argv[3]

import cryptography.hazmat.primitives.hashes as hashes  # noqa: E402
import cryptography.x509  # noqa: E402
import proxying  # noqa: E402
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
        said = self.headers.get("proxy-authorization", "")
        if said.startswith("NTLM "):
            if not self.step(base64.b64decode(said[5:])):
                return
        elif not self.user:
            return self.refuse("NTLM")
        fields = [("X-Proxy-User", self.user), ("X-Proxy-Connection", str(self.client_address[1]))]
        if self.command == "CONNECT":
            return proxying.tunnel(self, fields)
        proxying.forward(self, body, fields)

    do_POST = do_PUT = do_HEAD = do_CONNECT = do_GET

    def step(self, token):
        if self.context is None:
            self.context = spnego.server(
                protocol="ntlm", options=spnego.NegotiateOptions.use_ntlm, channel_bindings=bindings)
        try:
            out = self.context.step(token)
        except spnego.exceptions.SpnegoError:
            self.context = None
            return self.refuse("NTLM")
        if not self.context.complete:
            return self.refuse("NTLM " + base64.b64encode(out).decode())
        self.user, self.context = str(self.context.client_principal), None
        return True

    def refuse(self, asks):
        self.send_response(407)
        self.send_header("Proxy-Authenticate", asks)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"who?\n")
        return False

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
