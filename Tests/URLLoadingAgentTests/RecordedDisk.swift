// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import URLLoadingIO

/// What a traced process has changed in a folder, and how much of it a power cut would leave.
///
/// A file's content is on the disk as it was when the file was last synchronised. A new name is there once its file or
/// its folder was synchronised (ext4, XFS, Btrfs), a changed or removed one once its folder was. All else is lost.
struct RecordedDisk {
    /// The content of the disk after a synchronisation, if the power is cut before the next one.
    struct Cut {
        var files: [String: [UInt8]]
        /// The frames of each kind that the process had sent by then.
        var sent: [UInt16: Int]
    }

    private final class File {
        var content: [UInt8] = []
        var synchronized: [UInt8] = []
    }

    private let folder: String
    /// The names as the system has them, and those on the disk.
    private var names: [String: File] = [:]
    private var stored: [String: File] = [:]
    private var sent: [UInt16: Int] = [:]
    private(set) var cuts: [Cut] = []

    static let calls =
        "openat,pwrite64,ftruncate,rename,renameat,renameat2,link,linkat,unlink,unlinkat,fsync,fdatasync,sendmsg"
    static let words = [
        "/usr/bin/strace", "-D", "-f", "-qq", "-y", "-xx", "-s", "400000", "-e", "trace=\(calls)", "-o",
    ]

    /// Reads the output of strace.
    /// - Parameter folder: what lies elsewhere is ignored.
    init(_ trace: String, in folder: String) throws {
        self.folder = folder
        let bytes = [UInt8](try Data(contentsOf: URL(filePath: trace)))
        var begun: [Int: [UInt8]] = [:]
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            guard let space = line.firstIndex(of: UInt8(ascii: " ")),
                let process = Int(String(decoding: line[..<space], as: UTF8.self))
            else { continue }
            var text = Array(line[space...].drop { $0 == UInt8(ascii: " ") })
            if text.starts(with: Array("<... ".utf8)), let end = text.firstIndex(of: UInt8(ascii: ">")) {
                text = (begun.removeValue(forKey: process) ?? []) + text[(end + 1)...]
            } else if text.hasEnd(" <unfinished ...>") {
                begun[process] = text.dropLast(" <unfinished ...>".utf8.count)
                continue
            }
            apply(TracedCall(text))
        }
        // A cut is as late as possible: what was sent before the next synchronisation was sent.
        for index in cuts.indices.dropLast() { cuts[index].sent = cuts[index + 1].sent }
        if !cuts.isEmpty { cuts[cuts.count - 1].sent = sent }
    }

    private mutating func apply(_ call: TracedCall) {
        guard !call.hasFailed else { return }
        let texts = call.texts.map { String(decoding: $0, as: UTF8.self) }
        switch call.name {
        case "openat":
            guard call.flags.contains("O_CREAT"), let path = texts.first, path.hasPrefix(folder) else { return }
            if names[path] == nil { names[path] = File() }
            if call.flags.contains("O_TRUNC") { names[path]?.content = [] }
        case "pwrite64":
            guard let file = names[call.path], let data = call.texts.first, call.numbers.count == 3 else { return }
            let (count, offset) = (call.numbers[2], call.numbers[1])
            let missing = offset + count - file.content.count
            if missing > 0 { file.content += [UInt8](repeating: 0, count: missing) }
            file.content.replaceSubrange(offset..<(offset + count), with: data.prefix(count))
        case "ftruncate":
            guard let file = names[call.path], let size = call.numbers.first else { return }
            let missing = size - file.content.count
            file.content = file.content.prefix(size) + [UInt8](repeating: 0, count: max(0, missing))
        case "rename", "renameat", "renameat2":
            guard texts.count == 2, let file = names.removeValue(forKey: texts[0]) else { return }
            names[texts[1]] = file
        case "link", "linkat":
            guard texts.count == 2 else { return }
            names[texts[1]] = names[texts[0]]
        case "unlink", "unlinkat": if let path = texts.first { names[path] = nil }
        case "fsync", "fdatasync": synchronize(call.path)
        case "sendmsg":
            guard let frame = call.texts.first, frame.count >= 6 else { return }
            sent[UInt16(frame[4]) << 8 | UInt16(frame[5]), default: 0] += 1
        default: break
        }
    }

    private mutating func synchronize(_ path: String) {
        guard path.hasPrefix(folder) else { return }
        if let file = names[path] {
            file.synchronized = file.content
            if !stored.values.contains(where: { $0 === file }) { stored[path] = file }
        } else {
            let inside = { (name: String) in
                name.hasPrefix(path + "/") && !name.dropFirst(path.utf8.count + 1).contains("/")
            }
            stored = stored.filter { !inside($0.key) }.merging(names.filter { inside($0.key) }) { $1 }
        }
        cuts.append(Cut(files: stored.mapValues(\.synchronized), sent: sent))
    }
}

/// One line of strace's output, with all texts in hexadecimal.
private struct TracedCall {
    let name: String
    /// The texts in quotes.
    var texts: [[UInt8]] = []
    /// The path of the first descriptor.
    var path = ""
    /// The numbers behind the last text or path: the last one is the result.
    var numbers: [Int] = []
    /// What is neither a text nor a path.
    let flags: String
    var hasFailed: Bool { flags.contains(" = -1 ") || flags.contains(" = ?") }

    init(_ line: [UInt8]) {
        var plain: [UInt8] = []
        var paths: [[UInt8]] = []
        var index = 0
        while index < line.count {
            let byte = line[index]
            index += 1
            let end: UInt8? =
                byte == UInt8(ascii: "\"") ? byte : byte == UInt8(ascii: "<") ? UInt8(ascii: ">") : nil
            guard let end else {
                plain.append(byte)
                continue
            }
            var text: [UInt8] = []
            // Each byte is `\x` and two digits.
            while index + 3 < line.count, line[index] != end {
                text.append(Self.digit(line[index + 2]) << 4 | Self.digit(line[index + 3]))
                index += 4
            }
            index += 1
            if end == byte { texts.append(text) } else { paths.append(text) }
            plain.append(UInt8(ascii: "#"))
        }
        flags = String(decoding: plain, as: UTF8.self)
        name = String(flags.prefix { $0 != "(" })
        if let first = paths.first { path = String(decoding: first, as: UTF8.self) }
        let last = flags.split(separator: "#", omittingEmptySubsequences: false).last ?? ""
        numbers = last.split { !$0.isNumber && $0 != "-" }.compactMap { Int($0) }
    }

    private static func digit(_ byte: UInt8) -> UInt8 {
        byte >= UInt8(ascii: "a") ? byte &- UInt8(ascii: "a") &+ 10 : byte &- UInt8(ascii: "0")
    }
}

extension [UInt8] {
    fileprivate func hasEnd(_ text: String) -> Bool { suffix(text.utf8.count).elementsEqual(text.utf8) }
}
