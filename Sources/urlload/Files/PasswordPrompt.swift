// SPDX-License-Identifier: Apache-2.0

// Asks for a password on the terminal, with echo off. Keys that end or stop a program (Ctrl-C, Ctrl-Z) are read as
// bytes meanwhile: a program killed by their signal would leave the terminal without echo.

import Glibc

enum PasswordPrompt {
    /// Returns `nil` if there is no terminal or the input ends without an answer.
    static func ask(_ words: String) -> String? {
        let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
        guard terminal >= 0 else { return nil }
        defer { close(terminal) }
        while true {
            switch read(words, terminal) {
            case .line(let line): return line
            case .nothing: return nil
            case .signal(let number):
                kill(getpid(), number)
                // After a stop and a continuation, the question is asked again.
                guard number == SIGTSTP else { return nil }
            }
        }
    }

    private enum Ending {
        case line(String)
        case nothing
        case signal(Int32)
    }

    private static func read(_ words: String, _ terminal: Int32) -> Ending {
        var before = termios()
        guard tcgetattr(terminal, &before) == 0 else { return .nothing }
        var silent = before
        silent.c_lflag &= ~tcflag_t(ECHO | ICANON | ISIG)
        guard tcsetattr(terminal, TCSAFLUSH, &silent) == 0 else { return .nothing }
        defer {
            tcsetattr(terminal, TCSAFLUSH, &before)
            _ = say("\n", terminal)
        }
        guard say(words, terminal) else { return .nothing }
        let keys = withUnsafeBytes(of: before.c_cc) { Array($0) }
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while Glibc.read(terminal, &byte, 1) == 1 {
            switch byte {
            case 0x0A, 0x0D: return .line(String(decoding: line, as: UTF8.self))
            // A key code of 0 means that the key is disabled.
            case keys[Int(VINTR)] where byte != 0: return .signal(SIGINT)
            case keys[Int(VQUIT)] where byte != 0: return .signal(SIGQUIT)
            case keys[Int(VSUSP)] where byte != 0: return .signal(SIGTSTP)
            case keys[Int(VEOF)] where byte != 0:
                return line.isEmpty ? .nothing : .line(String(decoding: line, as: UTF8.self))
            case keys[Int(VKILL)] where byte != 0: line = []
            case 0x08, 0x7F:
                // Removes a whole character, which may be several bytes of UTF-8.
                while let last = line.popLast(), last & 0xC0 == 0x80 {}
            default: line.append(byte)
            }
        }
        return .nothing
    }

    private static func say(_ words: String, _ terminal: Int32) -> Bool {
        let bytes = Array(words.utf8)
        return write(terminal, bytes, bytes.count) == bytes.count
    }
}
