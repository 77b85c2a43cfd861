# SPDX-License-Identifier: Apache-2.0
"""Runs a program in a new terminal and prints the content of the screen when the program has ended.

screen.py COLUMNS AFTER KEYS PROGRAM ARGUMENT...

KEYS are typed AFTER seconds after the start (escapes as in Python; may be empty). Prints the longest line that was ever
drawn, the exit code, and the rows of the screen without empty ones at the end.
"""
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from fcntl import ioctl

ROWS = 24


def screen(data, columns):
    """The rows of a screen after these characters, and the columns of the longest line."""
    rows, row, column, longest = [[" "] * columns for _ in range(ROWS)], 0, 0, 0
    for token in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|.", data, re.S):
        if token == "\r":
            column = 0
        elif token == "\n":
            row += 1
            if row == ROWS:
                rows = rows[1:] + [[" "] * columns]
                row -= 1
        elif token.startswith("\x1b["):
            number = int(token[2:-1] or 1) if token[2:-1].isdigit() or not token[2:-1] else 1
            if token[-1] == "A":
                row = max(0, row - number)
            elif token[-1] == "K":
                rows[row][column:] = [" "] * (columns - column)
            elif token[-1] == "J":
                rows[row][column:] = [" "] * (columns - column)
                for rest in range(row + 1, ROWS):
                    rows[rest] = [" "] * columns
        else:
            if column == columns:
                row, column = min(row + 1, ROWS - 1), 0
            rows[row][column] = token
            column += 1
            longest = max(longest, column)
    text = ["".join(row).rstrip() for row in rows]
    while text and not text[-1]:
        text.pop()
    return text, longest


def main():
    columns, after, keys = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3].encode().decode("unicode_escape")
    child, terminal = pty.fork()
    if child == 0:
        # Who runs the tests may ignore it or hold it back, and both are inherited.
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        # The parent sets the size first.
        time.sleep(0.1)
        os.execv(sys.argv[4], sys.argv[4:])
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    data, start = b"", time.monotonic()
    while True:
        if keys and time.monotonic() - start > after:
            os.write(terminal, keys.encode("latin-1"))
            keys = ""
        if select.select([terminal], [], [], 0.05)[0]:
            try:
                piece = os.read(terminal, 65536)
            except OSError:
                break
            if not piece:
                break
            data += piece
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    rows, longest = screen(data.decode("utf-8", "replace"), columns)
    print(longest)
    print(code)
    print("colours" if b"\x1b[3" in data or b"\x1b[9" in data else "plain")
    print("\n".join(rows))


main()
