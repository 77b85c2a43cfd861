# SPDX-License-Identifier: Apache-2.0
"""The common part of the NTLM server and proxy: pyspnego verifies the messages, which authenticate a connection.

    python3 … PORT PACKAGES USERS [CERTIFICATE KEY]

PACKAGES is the directory of pyspnego, USERS a file with lines DOMAIN:USER:PASSWORD. With a certificate the server uses
TLS, and requires channel binding.
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

    def refusal(self, said):
        """What to ask for after a step of a proof; None once it is whole, and the connection its user's."""
        if self.context is None:
            self.context = spnego.server(
                protocol="ntlm", options=spnego.NegotiateOptions.use_ntlm, channel_bindings=bindings)
        try:
            out = self.context.step(base64.b64decode(said[5:]))
        except spnego.exceptions.SpnegoError:
            self.context = None
            return "NTLM"
        if not self.context.complete:
            return "NTLM " + base64.b64encode(out).decode()
        self.user, self.context = str(self.context.client_principal), None
        return None

    def log_message(self, *words):
        pass


def serve(handler):
    global bindings
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), handler)
    if len(sys.argv) > 4:
        with open(sys.argv[4], "rb") as file:
            certificate = cryptography.x509.load_pem_x509_certificate(file.read())
        bindings = spnego.channel_bindings.GssChannelBindings(
            application_data=b"tls-server-end-point:" + certificate.fingerprint(hashes.SHA256()))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[4], sys.argv[5])
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.serve_forever()
