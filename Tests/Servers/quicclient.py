# SPDX-License-Identifier: Apache-2.0
"""A client of HTTP/3 that shares no code with the library: aioquic.

    python3 -I quicclient.py MODULES ROOTS PORT PATH...

sends a GET for each path at once to 127.0.0.1, and prints a line for each: the status, the bytes of the body, and the
trailer `sum`; or `reset` or `closed` with the code of the error, of either side.
"""

import asyncio
import sys

sys.path.insert(0, sys.argv[1])
from aioquic.asyncio import QuicConnectionProtocol, connect
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamReset


class Client(QuicConnectionProtocol):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.http = H3Connection(self._quic)
        self.waiting = {}
        self.code = None

    def get(self, path):
        stream = self._quic.get_next_available_stream_id()
        self.http.send_headers(
            stream,
            [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"localhost"), (b":path", path.encode())],
            end_stream=True)
        answer = asyncio.get_running_loop().create_future()
        self.waiting[stream] = (answer, [], bytearray())
        self.transmit()
        return answer

    def finish(self, stream, text):
        answer = self.waiting[stream][0]
        if not answer.done():
            answer.set_result(text)

    def quic_event_received(self, event):
        if isinstance(event, StreamReset) and event.stream_id in self.waiting:
            self.finish(event.stream_id, f"reset {event.error_code}")
        if isinstance(event, ConnectionTerminated):
            for stream in self.waiting:
                self.finish(stream, f"closed {event.error_code}")
        for received in self.http.handle_event(event):
            if not isinstance(received, (HeadersReceived, DataReceived)):
                continue
            _, heads, body = self.waiting[received.stream_id]
            if isinstance(received, HeadersReceived):
                if not dict(received.headers).get(b":status", b"").startswith(b"1"):
                    heads.append(dict(received.headers))
            else:
                body += received.data
            if received.stream_ended:
                trailers = heads[1] if len(heads) > 1 else {}
                self.finish(
                    received.stream_id,
                    f"{heads[0][b':status'].decode()} {len(body)} {trailers.get(b'sum', b'-').decode()}")


async def main():
    configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, server_name="localhost")
    configuration.load_verify_locations(sys.argv[2])
    async with connect(
        "127.0.0.1", int(sys.argv[3]), configuration=configuration, create_protocol=Client, local_port=0
    ) as client:
        for answer in [client.get(path) for path in sys.argv[4:]]:
            print(await asyncio.wait_for(answer, 20), flush=True)


asyncio.run(main())
