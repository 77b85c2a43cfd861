# SPDX-License-Identifier: Apache-2.0
"""HTTP Message Signatures (RFC 9421) by http-message-signatures, an independent implementation: verifies requests, and
signs its responses with the same algorithm. The algorithm is the path. Arguments: port, folder of the modules of PyPI,
folder of the keys: ALGORITHM.pem, a private key for both sides, or `hmac-sha256.pem`, a secret."""
import base64
import hashlib
import http.server
import os
import sys

port, modules, keys = int(sys.argv[1]), sys.argv[2], sys.argv[3]
sys.path.insert(0, modules)

import http_message_signatures  # noqa: E402
from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: E402

ALGORITHMS = {
    cls.algorithm_id: cls for cls in vars(http_message_signatures.algorithms).values()
    if isinstance(cls, type) and getattr(cls, "algorithm_id", None)
}


class Keys(http_message_signatures.HTTPSignatureKeyResolver):
    """The key of an algorithm, by whose name it is known."""

    def text(self, name):
        if name not in ALGORITHMS:
            raise KeyError(name)
        with open(os.path.join(keys, name + ".pem"), "rb") as file:
            return file.read()

    def resolve_private_key(self, name):
        text = self.text(name)
        return text if name == "hmac-sha256" else load_pem_private_key(text, None)

    def resolve_public_key(self, name):
        key = self.resolve_private_key(name)
        return key if name == "hmac-sha256" else key.public_key()


class Message:
    pass


def request(handler):
    message = Message()
    message.method = handler.command
    message.url = "http://%s%s" % (handler.headers["host"], handler.path)
    message.headers = handler.headers
    message.body = None
    return message


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        name = self.path.split("?")[0].strip("/")
        try:
            verifier = http_message_signatures.HTTPMessageVerifier(
                signature_algorithm=ALGORITHMS[name], key_resolver=Keys())
            results = verifier.verify(request(self))
            stated = self.headers.get("content-digest")
            if stated and stated != digest(body):
                raise ValueError("the digest is not that of the body")
            covered = sorted(key for key in results[0].covered_components if key != '"@signature-params"')
            status, text = 200, "%s verified %s\n" % (name, " ".join(covered))
        except Exception as error:
            status, text = 401, "%s: %s\n" % (type(error).__name__, error)
        self.reply(status, text.encode(), name)

    do_POST = do_PUT = do_GET

    def reply(self, status, body, name):
        answer = Message()
        answer.status_code = status
        answer.request = request(self)
        answer.headers = {
            "Content-Type": "text/plain", "Content-Length": str(len(body)), "Content-Digest": digest(body)}
        if status == 200:
            signer = http_message_signatures.HTTPMessageSigner(
                signature_algorithm=ALGORITHMS[name], key_resolver=Keys())
            signer.sign(
                answer, key_id=name, label="answer", use_existing_digest=True,
                covered_component_ids=("@status", "content-type", "content-digest"))
        self.send_response(status)
        for field, value in answer.headers.items():
            self.send_header(field, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def digest(body):
    return "sha-256=:%s:" % base64.b64encode(hashlib.sha256(body).digest()).decode()


http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
