# SPDX-License-Identifier: Apache-2.0
"""A proxy with NTLM: a connection that is authenticated once is let through from then on. All names lead
to this machine.

Arguments: see ntlmproving.py.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import ntlmproving  # noqa: E402
import proxying  # noqa: E402


class Handler(ntlmproving.Handler):
    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        said = self.headers.get("proxy-authorization", "")
        asks = self.refusal(said) if said.startswith("NTLM ") else None if self.user else "NTLM"
        if asks:
            return self.refuse(asks)
        fields = [("X-Proxy-User", self.user), ("X-Proxy-Connection", str(self.client_address[1]))]
        if self.command == "CONNECT":
            return proxying.tunnel(self, fields)
        proxying.forward(self, body, fields)

    do_POST = do_PUT = do_HEAD = do_CONNECT = do_GET

    def refuse(self, asks):
        self.send_response(407)
        self.send_header("Proxy-Authenticate", asks)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"who?\n")


ntlmproving.serve(Handler)
