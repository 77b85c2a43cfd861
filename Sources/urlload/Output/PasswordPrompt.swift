// A password from whoever sits at the terminal, which shows none of it.

import Glibc

enum PasswordPrompt {
    /// `nil` where there is no terminal, or nobody answers.
    static func ask(_ words: String) -> String? {
        let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
        guard terminal >= 0 else { return nil }
        defer { close(terminal) }
        var before = termios()
        guard tcgetattr(terminal, &before) == 0 else { return nil }
        var silent = before
        silent.c_lflag &= ~tcflag_t(ECHO)
        guard tcsetattr(terminal, TCSAFLUSH, &silent) == 0 else { return nil }
        defer {
            tcsetattr(terminal, TCSAFLUSH, &before)
            _ = say("\n", terminal)
        }
        guard say(words, terminal) else { return nil }
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while read(terminal, &byte, 1) == 1 {
            if byte == 0x0A { return String(decoding: line, as: UTF8.self) }
            line.append(byte)
        }
        return nil
    }

    private static func say(_ words: String, _ terminal: Int32) -> Bool {
        let bytes = Array(words.utf8)
        return write(terminal, bytes, bytes.count) == bytes.count
    }
}
