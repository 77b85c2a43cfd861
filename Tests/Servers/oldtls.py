# SPDX-License-Identifier: Apache-2.0
"""A server of TLS 1.2 without secure renegotiation (RFC 5746), which ends its responses without close_notify.

OpenSSL has no server without RFC 5746, so this one is tlslite-ng.

    python3 -I oldtls.py MODULES CERTIFICATE KEY

prints the port that it listens on at 127.0.0.1. The certificate and its RSA key are in PEM. Every request gets the
response of HTTP/1.0 whose end is that of the connection.
"""

import socket
import sys
import threading

sys.path.insert(0, sys.argv[1])
from tlslite.api import HandshakeSettings, TLSConnection, X509CertChain, parsePEMKey
from tlslite.constants import CipherSuite, ExtensionType

# The server does not recognise the client's offer, and so does not answer it: a cipher suite of OpenSSL 3.0, an
# extension of later ones.
CipherSuite.TLS_EMPTY_RENEGOTIATION_INFO_SCSV = 0xEEEE
ExtensionType.renegotiation_info = 0xEEEE

with open(sys.argv[2]) as file:
    chain = X509CertChain()
    chain.parsePemList(file.read())
with open(sys.argv[3]) as file:
    key = parsePEMKey(file.read(), private=True)

settings = HandshakeSettings()
settings.minVersion = settings.maxVersion = (3, 3)
settings.useExtendedMasterSecret = False


def serve(accepted):
    """Answers one request, then closes the socket without an alert."""
    connection = TLSConnection(accepted)
    try:
        connection.handshakeServer(certChain=chain, privateKey=key, settings=settings)
        request = b""
        while b"\r\n\r\n" not in request:
            more = connection.read(min=1, max=4096)
            if not more:
                return
            request += more
        connection.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nfrom an old server\n")
        accepted.shutdown(socket.SHUT_WR)
        while accepted.recv(4096):
            pass
    except Exception as error:  # A client that refuses the handshake.
        print(type(error).__name__, file=sys.stderr)
    finally:
        accepted.close()


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
