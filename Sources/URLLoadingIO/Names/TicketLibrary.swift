// MIT Kerberos through GSSAPI (RFC 2743), if it is installed: proves to a service who this user is with the ticket in
// his cache. Found at run time and never required. Its calls block, and may ask a KDC over the network.

import Synchronization
import URLLoadingCSystem

package final class TicketLibrary: @unchecked Sendable {
    // Unchecked: pointers to functions, set once; the library itself is safe among threads. Its structures are passed
    // as raw pointers: a count and a pointer each, as in gssapi.h.
    private typealias Import = @convention(c) (UnsafeMutablePointer<UInt32>, UnsafeMutableRawPointer, UnsafeMutableRawPointer, UnsafeMutablePointer<OpaquePointer?>) -> UInt32
    private typealias Begin = @convention(c) (
        UnsafeMutablePointer<UInt32>, OpaquePointer?, UnsafeMutablePointer<OpaquePointer?>, OpaquePointer?, UnsafeMutableRawPointer, UInt32,
        UInt32, OpaquePointer?, UnsafeMutableRawPointer?, OpaquePointer?, UnsafeMutableRawPointer, UnsafeMutablePointer<UInt32>?,
        UnsafeMutablePointer<UInt32>?
    ) -> UInt32
    private typealias ReleaseBuffer = @convention(c) (UnsafeMutablePointer<UInt32>, UnsafeMutableRawPointer) -> UInt32
    private typealias ReleaseName = @convention(c) (UnsafeMutablePointer<UInt32>, UnsafeMutablePointer<OpaquePointer?>) -> UInt32
    private typealias End = @convention(c) (UnsafeMutablePointer<UInt32>, UnsafeMutablePointer<OpaquePointer?>, OpaquePointer?) -> UInt32
    private let importName: Import
    private let begin: Begin
    private let releaseBuffer: ReleaseBuffer
    private let releaseName: ReleaseName
    private let end: End

    /// A KDC that does not answer holds up nobody who needs none.
    private let threads = BlockingThreads(limit: 2)

    /// `nil` where there is none.
    package static let shared: TicketLibrary? = TicketLibrary("libgssapi_krb5.so.2")

    /// Stays loaded for the life of the process.
    package init?(_ path: String) {
        guard let handle = csys_library_open(path), let importName = csys_library_symbol(handle, "gss_import_name"),
            let begin = csys_library_symbol(handle, "gss_init_sec_context"),
            let releaseBuffer = csys_library_symbol(handle, "gss_release_buffer"),
            let releaseName = csys_library_symbol(handle, "gss_release_name"),
            let end = csys_library_symbol(handle, "gss_delete_sec_context")
        else { return nil }
        self.importName = unsafeBitCast(importName, to: Import.self)
        self.begin = unsafeBitCast(begin, to: Begin.self)
        self.releaseBuffer = unsafeBitCast(releaseBuffer, to: ReleaseBuffer.self)
        self.releaseName = unsafeBitCast(releaseName, to: ReleaseName.self)
        self.end = unsafeBitCast(end, to: End.self)
    }

    /// `gss_buffer_desc`.
    private struct Buffer {
        var count = 0
        var bytes: UnsafeMutableRawPointer?
    }
    /// `gss_OID_desc`.
    private struct Identifier {
        var count: UInt32
        var bytes: UnsafeMutableRawPointer?
    }
    /// RFC 4178 §3: SPNEGO.
    private static let negotiation: [UInt8] = [0x2B, 6, 1, 5, 5, 2]
    /// RFC 2743 §4.1: a service on a host.
    private static let serviceName: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x12, 1, 2, 1, 4]
    /// The service proves itself too. Credentials are not delegated: that flag stays off.
    private static let mutual: UInt32 = 2
    /// The upper bits of a status are errors (RFC 2743 §1.2.1.1).
    private static let failed: UInt32 = 0xFFFF_0000

    /// A proof to a service on a host, such as `HTTP`.
    package func context(for service: String, on host: String) -> TicketContext { TicketContext(self, service, host) }

    fileprivate func call(_ token: StopToken, _ work: @escaping @Sendable () -> TicketContext.Step) async -> TicketContext.Step {
        await threads.call(token, work) ?? .failed
    }

    fileprivate func name(_ service: String, _ host: String) -> OpaquePointer? {
        var minor: UInt32 = 0
        var name: OpaquePointer?
        var text = Array("\(service)@\(host)".utf8), kind = Self.serviceName
        let imported = text.withUnsafeMutableBytes { text in
            kind.withUnsafeMutableBytes { kind in
                var buffer = Buffer(count: text.count, bytes: text.baseAddress)
                var identifier = Identifier(count: UInt32(kind.count), bytes: kind.baseAddress)
                return importName(&minor, &buffer, &identifier, &name)
            }
        }
        return imported & Self.failed == 0 ? name : nil
    }

    fileprivate func step(_ context: inout OpaquePointer?, _ name: OpaquePointer, _ input: [UInt8]) -> TicketContext.Step {
        var minor: UInt32 = 0
        var mechanism = Self.negotiation, input = input
        var output = Buffer()
        defer { _ = releaseBuffer(&minor, &output) }
        let status = mechanism.withUnsafeMutableBytes { mechanism in
            input.withUnsafeMutableBytes { input in
                var identifier = Identifier(count: UInt32(mechanism.count), bytes: mechanism.baseAddress)
                var received = Buffer(count: input.count, bytes: input.baseAddress)
                return begin(&minor, nil, &context, name, &identifier, Self.mutual, 0, nil, &received, nil, &output, nil, nil)
            }
        }
        guard status & Self.failed == 0 else { return .failed }
        let bytes = output.bytes.map { Array(UnsafeRawBufferPointer(start: $0, count: output.count)) } ?? []
        return .goesOn(saying: bytes, isComplete: status == 0)
    }

    fileprivate func release(_ context: inout OpaquePointer?, _ name: inout OpaquePointer?) {
        var minor: UInt32 = 0
        if context != nil { _ = end(&minor, &context, nil) }
        if name != nil { _ = releaseName(&minor, &name) }
    }
}

/// One proof, from its first token to the one that proves the service to us. One step at a time.
package final class TicketContext: @unchecked Sendable {
    // Unchecked: what changes is touched under the lock.
    package enum Step: Sendable, Hashable {
        /// What is to be said; empty for nothing. Complete: each has proved himself to the other.
        case goesOn(saying: [UInt8], isComplete: Bool)
        /// No ticket that is good for it, a service that is another, or the wait was stopped.
        case failed
    }
    private let library: TicketLibrary
    private let service: String
    private let host: String
    private let lock = Lock<Void>(())
    private var name: OpaquePointer?
    private var context: OpaquePointer?

    fileprivate init(_ library: TicketLibrary, _ service: String, _ host: String) {
        self.library = library
        self.service = service
        self.host = host
    }

    deinit { library.release(&context, &name) }

    /// The first token, or the answer to one of the service's. A wait that is stopped leaves the call to itself.
    /// - Parameter input: empty for the first.
    package func step(_ input: [UInt8], _ token: StopToken) async -> Step {
        await library.call(token) { [self] in
            lock.withLock { _ in
                if name == nil { name = library.name(service, host) }
                guard let name else { return .failed }
                return library.step(&context, name, input)
            }
        }
    }
}
