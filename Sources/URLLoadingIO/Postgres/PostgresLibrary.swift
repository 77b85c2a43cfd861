// SPDX-License-Identifier: Apache-2.0

// libpq, the client library of PostgreSQL, if it is installed. Found at run time, never required: its functions are
// declared here, as in libpq-fe.h.

import URLLoadingCSystem

package final class PostgresLibrary: Sendable {
    /// `PGconn` and `PGresult`.
    typealias Handle = OpaquePointer
    typealias Text = UnsafePointer<CChar>

    // Of a connection.
    let connect: @Sendable @convention(c) (UnsafePointer<Text?>, UnsafePointer<Text?>, Int32) -> Handle?
    let close: @Sendable @convention(c) (Handle) -> Void
    let status: @Sendable @convention(c) (Handle) -> Int32
    let socket: @Sendable @convention(c) (Handle) -> Int32
    let message: @Sendable @convention(c) (Handle) -> Text?
    typealias NoticeProcessor = @convention(c) (UnsafeMutableRawPointer?, Text?) -> Void
    let setNoticeProcessor:
        @Sendable @convention(c) (Handle, NoticeProcessor, UnsafeMutableRawPointer?) -> UnsafeRawPointer?
    let setNonblocking: @Sendable @convention(c) (Handle, Int32) -> Int32

    // Statements.
    let send: @Sendable @convention(c) (Handle, Text) -> Int32
    let sendPrepare: @Sendable @convention(c) (Handle, Text, Text, Int32, UnsafePointer<UInt32>?) -> Int32
    let sendPrepared:
        @Sendable @convention(c) (
            Handle, Text, Int32, UnsafePointer<Text?>?, UnsafePointer<Int32>?, UnsafePointer<Int32>?, Int32
        ) -> Int32
    let flush: @Sendable @convention(c) (Handle) -> Int32
    let consumeInput: @Sendable @convention(c) (Handle) -> Int32
    let isBusy: @Sendable @convention(c) (Handle) -> Int32
    /// Returns a ``Notification``.
    let notification: @Sendable @convention(c) (Handle) -> UnsafeMutableRawPointer?
    let release: @Sendable @convention(c) (UnsafeMutableRawPointer) -> Void

    // TLS.
    /// Returns OpenSSL's object of a connection over TLS.
    let secure: (@Sendable @convention(c) (Handle, Text) -> UnsafeMutableRawPointer?)?
    /// `SSL_pending` of the OpenSSL that the library uses: the bytes that are decrypted and not read.
    let pending: (@Sendable @convention(c) (UnsafeMutableRawPointer) -> Int32)?

    // Results.
    let result: @Sendable @convention(c) (Handle) -> Handle?
    let resultStatus: @Sendable @convention(c) (Handle) -> Int32
    let errorField: @Sendable @convention(c) (Handle, Int32) -> Text?
    let clear: @Sendable @convention(c) (Handle) -> Void
    let rows: @Sendable @convention(c) (Handle) -> Int32
    let columns: @Sendable @convention(c) (Handle) -> Int32
    let value: @Sendable @convention(c) (Handle, Int32, Int32) -> UnsafePointer<UInt8>?
    let length: @Sendable @convention(c) (Handle, Int32, Int32) -> Int32
    let isNull: @Sendable @convention(c) (Handle, Int32, Int32) -> Int32
    let changedRows: @Sendable @convention(c) (Handle) -> Text?

    /// `PGnotify`.
    struct Notification {
        var channel: UnsafeMutablePointer<CChar>?
        var process: Int32
        var payload: UnsafeMutablePointer<CChar>?
        var next: UnsafeMutableRawPointer?
    }

    /// Connecting blocks, because libpq looks names up and reads its files.
    let threads = BlockingThreads(limit: 2)

    /// `nil` where the library is not installed.
    package static var shared: PostgresLibrary? { search.library }
    private static let search = FoundLibrary { PostgresLibrary("libpq.so.5") }

    /// Loads the library for the life of the process.
    package init?(_ path: String) {
        guard let symbols = Symbols(path) else { return nil }
        do throws(Symbols.Missing) {
            connect = try symbols.find("PQconnectdbParams")
            close = try symbols.find("PQfinish")
            status = try symbols.find("PQstatus")
            socket = try symbols.find("PQsocket")
            message = try symbols.find("PQerrorMessage")
            setNoticeProcessor = try symbols.find("PQsetNoticeProcessor")
            setNonblocking = try symbols.find("PQsetnonblocking")
            send = try symbols.find("PQsendQuery")
            sendPrepare = try symbols.find("PQsendPrepare")
            sendPrepared = try symbols.find("PQsendQueryPrepared")
            flush = try symbols.find("PQflush")
            consumeInput = try symbols.find("PQconsumeInput")
            isBusy = try symbols.find("PQisBusy")
            notification = try symbols.find("PQnotifies")
            release = try symbols.find("PQfreemem")
            result = try symbols.find("PQgetResult")
            resultStatus = try symbols.find("PQresultStatus")
            errorField = try symbols.find("PQresultErrorField")
            clear = try symbols.find("PQclear")
            rows = try symbols.find("PQntuples")
            columns = try symbols.find("PQnfields")
            value = try symbols.find("PQgetvalue")
            length = try symbols.find("PQgetlength")
            isNull = try symbols.find("PQgetisnull")
            changedRows = try symbols.find("PQcmdTuples")
        } catch { return nil }
        secure = symbols.optional("PQsslStruct")
        // A library built without OpenSSL needs none, and one that has it names it as a dependency.
        pending = symbols.optional("SSL_pending")
        LibraryCalls.loaded()
    }

    private struct Symbols {
        struct Missing: Error {}
        private let library: UnsafeMutableRawPointer

        init?(_ path: String) {
            guard let library = csys_library_open(path) else { return nil }
            self.library = library
        }

        func find<F>(_ name: String) throws(Missing) -> F {
            guard let symbol = csys_library_symbol(library, name) else { throw Missing() }
            return unsafeBitCast(symbol, to: F.self)
        }

        /// Also looks in the libraries that this one depends on.
        func optional<F>(_ name: String) -> F? {
            guard let symbol = csys_library_symbol(library, name) else { return nil }
            return unsafeBitCast(symbol, to: F.self)
        }
    }
}
