// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import urlload

struct AtomicFileTests {
    /// A temporary folder, removed with the test.
    private final class Folder {
        let path: String
        init() throws {
            var template = Array("/tmp/urlload-tests-XXXXXX".utf8CString)
            path = try #require(mkdtemp(&template).map { String(cString: $0) })
        }
        deinit {
            for name in names { unlink(path + "/" + name) }
            rmdir(path)
        }
        var names: [String] {
            guard let folder = opendir(path) else { return [] }
            defer { closedir(folder) }
            var names: [String] = []
            while let entry = readdir(folder) {
                let name = withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                if name != ".", name != ".." { names.append(name) }
            }
            return names.sorted()
        }
        func text(_ name: String) throws -> String {
            let file = try InputFile(path + "/" + name)
            return String(decoding: try file.next() ?? [], as: UTF8.self)
        }
    }

    private func write(_ text: String, to file: AtomicFile) throws {
        try Array(text.utf8).withUnsafeBytes { bytes in try file.write(bytes) }
    }

    @Test("A file appears under its name when it is complete") func theNameAppearsWithTheWholeFile() throws {
        let folder = try Folder()
        let file = try AtomicFile(path: folder.path + "/a")
        try write("one ", to: file)
        #expect(folder.names.count == 1 && folder.names[0].hasPrefix(".urlload-"))
        try write("two", to: file)
        try file.commit()
        #expect(folder.names == ["a"])
        #expect(try folder.text("a") == "one two")
    }

    @Test("A dropped file leaves nothing") func aDroppedFileLeavesNothing() throws {
        let folder = try Folder()
        do {
            let file = try AtomicFile(path: folder.path + "/a")
            try write("half", to: file)
        }
        #expect(folder.names == [])
    }

    @Test("An existing file is replaced only by the complete one") func theOldFileStaysUntilThen() throws {
        let folder = try Folder()
        let old = try AtomicFile(path: folder.path + "/a")
        try write("old", to: old)
        try old.commit()
        chmod(folder.path + "/a", 0o640)
        let new = try AtomicFile(path: folder.path + "/a")
        try write("new", to: new)
        #expect(try folder.text("a") == "old")
        try new.commit()
        #expect(try folder.text("a") == "new")
        var status = stat()
        #expect(stat(folder.path + "/a", &status) == 0)
        #expect(status.st_mode & 0o777 == 0o640)
    }

    @Test("A symbolic link is kept and its target replaced") func aLinkKeepsPointing() throws {
        let folder = try Folder()
        let target = try AtomicFile(path: folder.path + "/target")
        try target.commit()
        #expect(symlink("target", folder.path + "/link") == 0)
        let file = try AtomicFile(path: folder.path + "/link")
        try write("through", to: file)
        try file.commit()
        #expect(folder.names == ["link", "target"])
        #expect(try folder.text("target") == "through")
    }

    @Test("A device is written to") func devicesAreWrittenTo() throws {
        let file = try AtomicFile(path: "/dev/null")
        try write("gone", to: file)
        try file.commit()
        var status = stat()
        #expect(stat("/dev/null", &status) == 0 && status.st_mode & S_IFMT == S_IFCHR)
    }

    @Test("A file that must replace none gets a number, or is dropped, if its name was taken meanwhile")
    func aTakenNameIsLeftAlone() throws {
        let folder = try Folder()
        let files = try ["one", "two", "three"].map { text in
            let file = try AtomicFile(path: folder.path + "/a", collision: text == "three" ? .skip : .number)
            try write(text, to: file)
            return file
        }
        for file in files { try file.commit() }
        #expect(folder.names == ["a", "a.1"])
        #expect(try folder.text("a") == "one" && folder.text("a.1") == "two")
        #expect(files.map(\.name) == ["/a", "/a.1", "/a"].map { folder.path + $0 })
        #expect(files.map(\.isDropped) == [false, false, true])
    }

    @Test("An error names the file") func failuresNameTheFile() throws {
        let folder = try Folder()
        #expect { _ = try AtomicFile(path: folder.path + "/no/such") } throws: {
            ($0 as? OutputError)?.code == .write
                && ($0 as? OutputError)?.words == "\(folder.path)/no/such: No such file or directory"
        }
        #expect { _ = try AtomicFile(path: folder.path) } throws: {
            ($0 as? OutputError)?.words.hasSuffix("Is a directory") == true
        }
    }
}
