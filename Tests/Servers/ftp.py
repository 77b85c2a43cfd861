# SPDX-License-Identifier: Apache-2.0
"""A server of ftp for ada, whose password is secret: ftp.py MODULES ROOT ADDRESS PORT [CERTIFICATE]."""

import sys

sys.path.insert(0, sys.argv[1])

from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import FTPHandler
from pyftpdlib.servers import ThreadedFTPServer

root, address, port = sys.argv[2], sys.argv[3], int(sys.argv[4])
handler = FTPHandler
if len(sys.argv) > 5:
    from pyftpdlib.handlers import TLS_FTPHandler as handler

    handler.certfile = sys.argv[5]
    handler.tls_control_required = handler.tls_data_required = True
handler.authorizer = DummyAuthorizer()
handler.authorizer.add_user("ada", "secret", root, perm="elradfmwMT")
ThreadedFTPServer((address, port), handler).serve_forever()
