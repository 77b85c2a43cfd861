# SPDX-License-Identifier: Apache-2.0
"""Runs a program on a new terminal, types keys, and prints the content of the terminal.

    python3 terminal.py [--at-once] KEYS PROGRAM ARGUMENT...

KEYS are typed when the terminal stops echoing, or at once; backslash escapes as in Python. Prints three lines: the
content as a Python literal; whether the terminal echoes at the end; the program's exit code, negative for a signal.
"""
import os
import pty
import select
import signal
import sys
import termios
import time

at_once = sys.argv[1] == "--at-once"
if at_once:
    del sys.argv[1]
keys = sys.argv[1].encode("utf-8").decode("unicode_escape").encode("latin-1")
child, terminal = pty.fork()
if child == 0:
    # A parent process may ignore or block SIGINT, and both are inherited.
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execv(sys.argv[2], sys.argv[2:])


def echoes():
    return bool(termios.tcgetattr(terminal)[3] & termios.ECHO)


shown, typed, status, deadline = b"", False, None, time.monotonic() + 30
while status is None and time.monotonic() < deadline:
    if select.select([terminal], [], [], 0.01)[0]:
        try:
            shown += os.read(terminal, 4096)
        except OSError:
            pass
    if not typed and (at_once or (not echoes() and shown)):
        os.write(terminal, keys)
        typed = True
    pid, state = os.waitpid(child, os.WNOHANG)
    if pid:
        status = os.waitstatus_to_exitcode(state)
after = echoes()
while select.select([terminal], [], [], 0.05)[0]:
    try:
        piece = os.read(terminal, 4096)
    except OSError:
        break
    if not piece:
        break
    shown += piece
print(ascii(shown.decode("utf-8", "replace")))
print("echoes" if after else "silent")
print(status)
