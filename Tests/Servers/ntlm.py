# SPDX-License-Identifier: Apache-2.0
"""A server with NTLM: a connection that is authenticated once stays authenticated. Arguments: see ntlmproving.py."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import ntlmproving  # noqa: E402


class Handler(ntlmproving.Handler):
    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        said = self.headers.get("authorization", "")
        asks = self.refusal(said) if said.startswith("NTLM ") else None if self.user else "NTLM"
        if asks:
            return self.reply(401, "who?\n", asks)
        self.reply(200, "%s %d\n" % (self.user, len(body)))

    do_POST = do_PUT = do_HEAD = do_GET

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


ntlmproving.serve(Handler)
