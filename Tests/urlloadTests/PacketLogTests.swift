// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import urlload

struct PacketLogTests {
    @Test("The groups of --next share the files of --qlog: each connection has one")
    func groups() throws {
        var template = Array("/tmp/urlload-tests-XXXXXX".utf8CString)
        let folder = try #require(mkdtemp(&template).map { String(cString: $0) })
        let path = folder + "/log"
        defer {
            for name in ["/log", "/log.2"] { unlink(folder + name) }
            rmdir(folder)
        }
        for connection in 1...2 {
            let log = try PacketLog.shared(path)
            log.add(Array("connection \(connection)".utf8), of: connection)
            #expect(log.problem == nil)
        }
        #expect(try InputFile.all(path) == Array("connection 1".utf8))
        #expect(try InputFile.all(path + ".2") == Array("connection 2".utf8))
    }
}
