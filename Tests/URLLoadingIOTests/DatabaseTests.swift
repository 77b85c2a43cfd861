// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingIO
import URLLoadingTestSupport

@Suite struct DatabaseTests {
    @Test func `A statement keeps working after its database was released`() throws {
        let folder = try makeTemporaryFolder("database")
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("a.sqlite").path
        var database: Database? = try Database(path: path)
        try database?.execute("CREATE TABLE word (text TEXT)")
        let made = try database?.statement("INSERT INTO word VALUES (?)")
        let insert = try #require(made)
        database = nil
        try insert.run("ä\0b")
        let select = try Database(path: path).statement("SELECT text FROM word")
        var found: [String] = []
        try select.each {
            found.append(select.text(0))
            return true
        }
        #expect(found == ["ä\0b"])
    }

    @Test("Automatic checkpoints are off: no connection moves the log")
    func automaticCheckpoints() throws {
        let folder = try makeTemporaryFolder("database")
        defer { try? FileManager.default.removeItem(at: folder) }
        let database = try Database(path: folder.appendingPathComponent("a.sqlite").path)
        let pragma = try database.statement("PRAGMA wal_autocheckpoint")
        var pages: Int64 = -1
        try pragma.each { () throws(DatabaseFailure) in
            pages = pragma.integer(0)
            return true
        }
        #expect(pages == 0)
    }
}
