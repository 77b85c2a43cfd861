# SPDX-License-Identifier: Apache-2.0
"""A server of HTTP/3 that shares no code with the library: aioquic.

    python3 -I quic.py MODULES CERTIFICATE KEY [retry] [early]

prints the port that it listens on at 127.0.0.1. The certificate and its key are in PEM. GET /N gets N bytes, and any
other request its own body. With `retry`, the server proves the client's address first (RFC 9000 8.1.2). With `early`,
it gives tickets, takes early data of each once (RFC 9001 4.6), and the field `early` says which requests came so.
"""

import asyncio
import sys

sys.path.insert(0, sys.argv[1])
from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated


class Server(QuicConnectionProtocol):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.http = None
        self.requests = {}
        self.early = set()

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        if self.http is None:
            return
        for received in self.http.handle_event(event):
            if not isinstance(received, (HeadersReceived, DataReceived)):
                continue
            if received.stream_id not in self.requests and not self._quic._handshake_complete:
                self.early.add(received.stream_id)
            headers, body = self.requests.setdefault(received.stream_id, ([], bytearray()))
            if isinstance(received, HeadersReceived):
                headers += received.headers
            else:
                body += received.data
            if received.stream_ended:
                self.answer(received.stream_id, dict(headers), bytes(body))
        self.transmit()

    def answer(self, stream, fields, body):
        if fields[b":method"] == b"GET":
            body = bytes(number % 251 for number in range(int(fields[b":path"][1:])))
        fields = [(b":status", b"200"), (b"server", b"aioquic"), (b"content-length", b"%d" % len(body))]
        self.http.send_headers(stream, fields + ([(b"early", b"1")] if stream in self.early else []))
        self.http.send_data(stream, body, end_stream=True)


async def main():
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.load_cert_chain(sys.argv[2], sys.argv[3])
    tickets = {}
    named = {}
    if "early" in sys.argv[4:]:
        named["session_ticket_handler"] = lambda ticket: tickets.__setitem__(ticket.ticket, ticket)
        named["session_ticket_fetcher"] = lambda label: tickets.pop(label, None)
    server = await serve(
        "127.0.0.1", 0, configuration=configuration, create_protocol=Server, retry="retry" in sys.argv[4:], **named)
    print(server._transport.get_extra_info("sockname")[1], flush=True)
    await asyncio.Future()


asyncio.run(main())
