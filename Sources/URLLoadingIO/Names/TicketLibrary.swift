// MIT Kerberos through GSSAPI (RFC 2743), if it is installed: proves to a service who this user is with the ticket in
// his cache. Found at run time and never required. Its calls block, and may ask a KDC over the network.

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

    /// The first token for a service on a host, such as `HTTP`; `nil` without a ticket that is good for it, or if the
    /// wait was stopped first. The call then goes on alone.
    package func token(for service: String, on host: String, _ token: StopToken) async -> [UInt8]? {
        await threads.call(token) { [self] in make(service, host) } ?? nil
    }

    private func make(_ service: String, _ host: String) -> [UInt8]? {
        var minor: UInt32 = 0
        var name: OpaquePointer?
        var text = Array("\(service)@\(host)".utf8), kind = Self.serviceName, mechanism = Self.negotiation
        defer { if name != nil { _ = releaseName(&minor, &name) } }
        let imported = text.withUnsafeMutableBytes { text in
            kind.withUnsafeMutableBytes { kind in
                var buffer = Buffer(count: text.count, bytes: text.baseAddress)
                var identifier = Identifier(count: UInt32(kind.count), bytes: kind.baseAddress)
                return importName(&minor, &buffer, &identifier, &name)
            }
        }
        guard imported & Self.failed == 0 else { return nil }
        var context: OpaquePointer?
        var output = Buffer()
        defer {
            _ = releaseBuffer(&minor, &output)
            if context != nil { _ = end(&minor, &context, nil) }
        }
        let begun = mechanism.withUnsafeMutableBytes { mechanism in
            var identifier = Identifier(count: UInt32(mechanism.count), bytes: mechanism.baseAddress)
            return begin(&minor, nil, &context, name, &identifier, Self.mutual, 0, nil, nil, nil, &output, nil, nil)
        }
        guard begun & Self.failed == 0, output.count > 0, let bytes = output.bytes else { return nil }
        return Array(UnsafeRawBufferPointer(start: bytes, count: output.count))
    }
}
