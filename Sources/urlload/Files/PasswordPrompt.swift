// A password from whoever sits at the terminal, which shows none of it. Keys that end or stop a program come here as bytes
// meanwhile: a program that died of one would leave a terminal that shows nothing any more.

import Glibc

enum PasswordPrompt {
    /// `nil` where there is no terminal, or nobody answers.
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
                // Whoever only stopped is asked again.
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
            // 0 is no key.
            case keys[Int(VINTR)] where byte != 0: return .signal(SIGINT)
            case keys[Int(VQUIT)] where byte != 0: return .signal(SIGQUIT)
            case keys[Int(VSUSP)] where byte != 0: return .signal(SIGTSTP)
            case keys[Int(VEOF)] where byte != 0:
                return line.isEmpty ? .nothing : .line(String(decoding: line, as: UTF8.self))
            case keys[Int(VKILL)] where byte != 0: line = []
            case 0x08, 0x7F:
                // A character, which may be several bytes.
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
