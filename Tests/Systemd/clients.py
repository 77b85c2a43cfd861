# SPDX-License-Identifier: Apache-2.0
"""Connects to an agent's socket again and again, from ten threads. Prints how many connections were answered, how many
ended before the answer, as programs repeat them, and how many were refused."""
import socket
import struct
import sys
import threading
import time


def field(tag, value):
    return struct.pack(">HI", tag, len(value)) + value


FIELDS = field(1, struct.pack(">q", 1)) + field(2, struct.pack(">q", 1)) + field(3, b"clients")
HELLO = struct.pack(">IHBI", 7 + len(FIELDS), 1, 0, 0) + FIELDS
counts = {"answered": 0, "ended": 0, "refused": 0}
lock = threading.Lock()


def connect(path, end):
    while time.time() < end:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(20)
            outcome = "refused"
            try:
                client.connect(path)
                outcome = "ended"
                client.sendall(HELLO)
                outcome = "answered" if len(client.recv(6)) == 6 else "ended"
            except OSError as error:
                print(outcome, error)
        with lock:
            counts[outcome] += 1


threads = [threading.Thread(target=connect, args=(sys.argv[1], time.time() + float(sys.argv[2]))) for _ in range(10)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("clients answered" if counts["answered"] > 100 else "no clients", "refused", counts["refused"])
