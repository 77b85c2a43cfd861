// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoadingIO
import URLLoadingTestSupport

@testable import URLLoading

/// Stored credentials, their place and their scope: checklist 2, 3, 86; and netrc files (security 10).
@Suite struct CredentialStoreTests {
    private let space = ProtectionSpace(host: "a.test", port: 80, scheme: "http", realm: "r", method: .basic)

    @Test func `every part of a protection space tells credentials apart (security 82)`() {
        let store = CredentialStore()
        let ada = Credential(user: "ada", password: "1")
        let ben = Credential(user: "ben", password: "2")
        #expect(!store.set(Credential(user: "x", password: "", persistence: .none), for: space))
        store.set(ada, for: space)
        let (host, port, scheme, realm, method) = (space.host, space.port, space.scheme, space.realm, space.method)
        for other in [
            ProtectionSpace(host: "other.test", port: port, scheme: scheme, realm: realm, method: method),
            ProtectionSpace(host: host, port: port + 1, scheme: scheme, realm: realm, method: method),
            ProtectionSpace(host: host, port: port, scheme: "ftp", realm: realm, method: method),
            ProtectionSpace(host: host, port: port, scheme: scheme, realm: (realm ?? "") + "x", method: method),
            ProtectionSpace(host: host, port: port, scheme: scheme, realm: realm, method: .ntlm),
            ProtectionSpace(host: host, port: port, scheme: scheme, realm: realm, method: method, isProxy: true),
        ] { #expect(store.credential(for: other) == nil, "\(other)") }
        store.set(ben, for: space)
        #expect(store.credential(for: space) == ben && store.credentials(for: space) == [ben, ada])
        store.set(Credential(user: "ada", password: "3"), for: space)
        #expect(store.credential(for: space)?.password == "3" && store.credentials(for: space).count == 2)
        store.remove(ada, for: space)
        #expect(store.all == [space: [ben]])
        store.removeAll()
        #expect(
            store.all.isEmpty && !store.set(Credential(user: "p", password: "", persistence: .permanent), for: space))
        #expect("\(store)" == "1 protection spaces")
    }

    @Test func `a stored credential is found while another process replaces the file`() throws {
        try withTemporaryURL("credentials") { folder in
            let file = folder.appending(path: "credentials.json").path()
            let store = CredentialStore(file: URL(filePath: file))
            store.set(Credential(user: "ada", password: "kept", persistence: .permanent), for: space)
            let (isReplaced, isOver, hasEnded) = (Flag(), Flag(), Flag())
            let bytes = try Data(contentsOf: URL(filePath: file))
            let folder = folder.path()
            BlockingThreads.files.run {
                while !isOver.value {
                    guard let new = try? FileWriter.create(in: folder, prefix: ".new-") else { continue }
                    _ = bytes.withUnsafeBytes { try? new.write($0, at: 0) }
                    try? new.move(from: new.path, to: file, replacing: true, synchronizes: false)
                    isReplaced.raise()
                }
                hasEnded.raise()
            }
            isReplaced.waitBlocking()
            for _ in 0..<500 where store.credential(for: space)?.user != "ada" { Issue.record("not found") }
            isOver.raise()
            hasEnded.waitBlocking()
        }
    }

    @Test func `permanent credentials are in a private file, and no others are (security 81)`() throws {
        try withTemporaryURL("credentials") { folder in
            let file = folder.appending(path: "deep/credentials.json")
            let store = CredentialStore(file: file)
            #expect(store.credential(for: space) == nil && !FileManager.default.fileExists(atPath: folder.path()))
            store.set(Credential(user: "mem", password: "m3mory"), for: space)
            #expect(!FileManager.default.fileExists(atPath: file.path()))
            #expect(store.set(Credential(user: "ada", password: "k\u{E9}pt", persistence: .permanent), for: space))
            let mode = try FileManager.default.attributesOfItem(atPath: file.path())[.posixPermissions] as? Int
            #expect(mode == 0o600)
            let text = String(decoding: try Data(contentsOf: file), as: UTF8.self)
            #expect(!text.contains("m3mory"))
            let other = CredentialStore(file: file)
            #expect(
                other.credential(for: space)?.password == "k\u{E9}pt"
                    && other.credential(for: space)?.persistence == .permanent)
            other.remove(Credential(user: "ada", password: ""), for: space)
            #expect(store.credentials(for: space).map(\.user) == ["mem"])
            try Data("no json".utf8).write(to: file)
            #expect(other.all.isEmpty && other.set(.bearer("t", persistence: .permanent), for: space))
            #expect(CredentialStore(file: file).credential(for: space)?.token == "t")
        }
    }

    @Test func `a file whose lock another process holds is changed later, and no change waits without an end`() throws {
        try withTemporaryURL("credentials") { folder in
            let file = folder.appending(path: "credentials.json")
            let store = CredentialStore(file: file)
            let ada = Credential(user: "ada", password: "1", persistence: .permanent)
            let ben = Credential(user: "ben", password: "2", persistence: .permanent)
            #expect(store.set(ada, for: space))
            var lock: FileLock? = try FileLock(file.path(percentEncoded: false) + ".lock", timeout: 1_000)
            #expect(!store.set(ben, for: space) && store.credential(for: space) == ben && lock != nil)
            #expect(store.problem != nil)
            lock = nil
            #expect(store.set(ben, for: space))
            #expect(CredentialStore(file: file).credentials(for: space).map(\.user).sorted() == ["ada", "ben"])
        }
    }

    @Test(arguments: [false, true]) func `what another process keeps from being removed is not used, and removed later`(
        isAll: Bool
    ) throws {
        try withTemporaryURL("credentials") { folder in
            let file = folder.appending(path: "credentials.json")
            let store = CredentialStore(file: file)
            let ada = Credential(user: "ada", password: "1", persistence: .permanent)
            #expect(store.set(ada, for: space))
            var lock: FileLock? = try FileLock(file.path(percentEncoded: false) + ".lock", timeout: 60_000)
            if isAll { store.removeAll() } else { store.remove(ada, for: space) }
            #expect(store.credential(for: space) == nil && store.problem != nil)
            #expect(CredentialStore(file: file).credential(for: space) == ada && lock != nil)
            lock = nil
            // The next look at the file.
            #expect(store.all.isEmpty && CredentialStore(file: file).all.isEmpty)
            #expect(store.set(ada, for: space) && store.credential(for: space) == ada)
        }
    }

    @Test func `what is removed while the file cannot be read is removed later`() {
        withTemporaryURL("credentials") { folder in
            let file = folder.appending(path: "credentials.json")
            let path = file.path(percentEncoded: false)
            let store = CredentialStore(file: file)
            #expect(store.set(Credential(user: "ada", password: "1", persistence: .permanent), for: space))
            // A link to itself cannot be opened (ELOOP), as a file without a free descriptor.
            #expect(rename(path, path + ".kept") == 0 && symlink("credentials.json", path) == 0)
            store.removeAll()
            #expect(rename(path + ".kept", path) == 0)
            #expect(store.credential(for: space) == nil && CredentialStore(file: file).all.isEmpty)
        }
    }

    @Test func `what could not be removed is removed when the process exits`() async throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/credentials.json"
        defer { withExtendedLifetime(folder) {} }
        await #expect(processExitsWith: .success) { [path = path as String] in
            let store = CredentialStore(file: URL(filePath: path))
            let space = ProtectionSpace(host: "a.test", port: 80, scheme: "http", realm: "r", method: .basic)
            guard store.set(Credential(user: "ada", password: "1", persistence: .permanent), for: space) else {
                exit(3)
            }
            var lock = try? FileLock(path + ".lock", timeout: 60_000)
            store.removeAll()
            guard lock != nil, CredentialStore(file: URL(filePath: path)).all.count == 1 else { exit(4) }
            lock = nil
            exit(0)
        }
        #expect(CredentialStore(file: URL(filePath: path)).all.isEmpty)
    }

    /// A file that is too large, or that others may write to, is not overwritten: its content is not the store's.
    @Test func `an unreadable file is not lost`() throws {
        try withTemporaryURL("credentials") { folder in
            let file = folder.appending(path: "credentials.json")
            let store = CredentialStore(file: file)
            let ada = Credential(user: "ada", password: "1", persistence: .permanent)
            let ben = Credential(user: "ben", password: "2", persistence: .permanent)
            store.set(ada, for: space)
            try FileManager.default.setAttributes([.posixPermissions: 0o622], ofItemAtPath: file.path())
            #expect(!store.set(ben, for: space) && store.credential(for: space) == ben)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path())
            #expect(CredentialStore(file: file).all == [space: [ada]])
            // More than is ever read is never written.
            let huge = Credential(
                user: "huge", password: String(repeating: "x", count: 5 << 20), persistence: .permanent)
            #expect(!store.set(huge, for: space))
            #expect(CredentialStore(file: file).all == [space: [ada]])
            // A file that is no credential store is moved aside.
            try Data("no json".utf8).write(to: file)
            #expect(store.set(ada, for: space))
            let aside = folder.appending(path: "credentials.json.damaged")
            #expect(String(decoding: (try? Data(contentsOf: aside)) ?? Data(), as: UTF8.self) == "no json")
        }
    }

    /// Security 81: a folder in which others may replace or read files is not used, as for cookies and cache.
    @Test(arguments: ["others may write", "a link"]) func `a folder that is not private gets no credentials`(
        _ fault: String
    ) throws {
        try withTemporaryURL("credentials") { folder in
            let place = folder.appending(path: "place", directoryHint: .isDirectory)
            let file = place.appending(path: "credentials.json")
            let elsewhere = folder.appending(path: "elsewhere", directoryHint: .isDirectory)
            try FileManager.default.createDirectory(at: elsewhere, withIntermediateDirectories: true)
            if fault == "a link" {
                try FileManager.default.createSymbolicLink(
                    atPath: folder.path() + "/place", withDestinationPath: elsewhere.path())
            } else {
                try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
                chmod(place.path(), 0o777)
            }
            let store = CredentialStore(file: file)
            let ada = Credential(user: "ada", password: "1", persistence: .permanent)
            #expect(!store.set(ada, for: space) && store.credential(for: space) == ada)
            #expect(try FileManager.default.contentsOfDirectory(atPath: place.path()).isEmpty)
            // An existing file may be another user's.
            let good = folder.appending(path: "good/credentials.json")
            #expect(CredentialStore(file: good).set(ada, for: space))
            try Data(contentsOf: good).write(to: file)
            chmod(file.path(), 0o600)
            #expect(CredentialStore(file: file).all.isEmpty && CredentialStore(file: good).all.count == 1)
        }
    }

    @Test func `concurrent stores lose no credential`() async throws {
        let folder = temporaryURL("credentials")
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "c.json")
        let space = space
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<16 {
                group.addTask {
                    _ = CredentialStore(file: file).set(
                        Credential(user: "u\(index)", password: "", persistence: .permanent), for: space)
                }
            }
        }
        #expect(CredentialStore(file: file).credentials(for: space).count == 16)
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.path()).sorted()
        #expect(left == ["c.json", "c.json.lock"])
    }

    @Test("a netrc file gives the first credential of each machine") func netrc() throws {
        let text = """
            # machine hidden.test login no password no
            machine a.test login ada password "s 3\\"cret" # said
            machine b.test
              password first
              login ben
            macdef init
            machine c.test login no password no

            machine a.test login other password two
            machine empty.test login nobody
            default login any password thing
            """
        let entries = NetrcEntry.parse(text)
        #expect(entries.map(\.machine) == ["a.test", "b.test", "a.test", "empty.test", nil])
        try withTemporaryURL("credentials") { folder in
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let file = folder.appending(path: "netrc")
            try Data(text.utf8).write(to: file)
            let reader = NetrcReader(.file(file))
            func found(_ host: String, _ user: String? = nil) -> String? {
                reader.credential(for: host, user: user).map { "\($0.user) \($0.password)" }
            }
            #expect(
                found("A.TEST") == "ada s 3\"cret" && found("a.test", "other") == "other two"
                    && found("b.test") == "ben first")
            // Without a password it is no entry, and the next that fits counts.
            #expect(found("empty.test") == "any thing" && found("elsewhere.test") == "any thing")
            #expect(NetrcReader(.file(folder.appending(path: "none"))).credential(for: "a.test", user: nil) == nil)
        }
        #expect(NetrcEntry.parse("machine") == [] && NetrcEntry.parse("login x password y") == [])
        #expect(NetrcEntry.parse("machine a password") == [NetrcEntry(machine: "a")])
    }

    @Test("a netrc file that cannot be read for now is read at the next question, and then no more")
    func netrcForNow() throws {
        try withTemporaryURL("credentials") { folder in
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let file = folder.appending(path: "netrc")
            let path = file.path(percentEncoded: false)
            // A link to itself cannot be opened (ELOOP), as a file without a free descriptor.
            #expect(symlink("netrc", path) == 0)
            let reader = NetrcReader(.file(file))
            #expect(reader.credential(for: "a.test", user: nil) == nil)
            #expect(unlink(path) == 0)
            try Data("machine a.test login ada password one".utf8).write(to: file)
            #expect(reader.credential(for: "a.test", user: nil)?.user == "ada")
            #expect(unlink(path) == 0)
            #expect(reader.credential(for: "a.test", user: nil)?.user == "ada")
        }
    }
}
