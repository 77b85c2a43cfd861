# SPDX-License-Identifier: Apache-2.0
"""Serves 200,000 bytes in slow pieces, from any offset, at 127.0.0.1, on port 8000 or the one of the argument.

At /stalls a request from the beginning gets one half only, and then nothing.
"""
import http.server
import sys
import time

CONTENT = bytes((i * 31 + (i >> 8)) & 255 for i in range(200_000))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        first = 0
        if self.headers.get("If-Range") == '"one"':
            first = int(self.headers["Range"].split("=")[1].split("-")[0])
        self.send_response(206 if first else 200)
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(CONTENT) - 1}/{len(CONTENT)}")
        self.send_header("Content-Length", str(len(CONTENT) - first))
        self.send_header("ETag", '"one"')
        self.end_headers()
        stalls = self.path == "/stalls" and not first
        for offset in range(first, len(CONTENT) // 2 if stalls else len(CONTENT), 5_000):
            self.wfile.write(CONTENT[offset : offset + 5_000])
            time.sleep(0.1)
        if stalls:
            time.sleep(600)

    def log_message(self, *arguments):
        print(self.headers.get("Range", "-"), flush=True)


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8000), Handler).serve_forever()
