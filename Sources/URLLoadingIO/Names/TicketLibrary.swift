// SPDX-License-Identifier: Apache-2.0

// MIT Kerberos through GSSAPI (RFC 2743), if it is installed: authenticates the user to a service with the tickets in
// the user's cache. Found at run time, never required. Its calls block and may contact a KDC over the network.

import URLLoadingCSystem

package final class TicketLibrary: Sendable {
    // The library is thread-safe. Its structures are passed as raw pointers to a count and a pointer, as in gssapi.h.
    private typealias Import =
        @Sendable @convention(c) (
            UnsafeMutablePointer<UInt32>, UnsafeMutableRawPointer, UnsafeMutableRawPointer,
            UnsafeMutablePointer<OpaquePointer?>
        ) -> UInt32
    private typealias Begin =
        @Sendable @convention(c) (
            UnsafeMutablePointer<UInt32>, OpaquePointer?, UnsafeMutablePointer<OpaquePointer?>, OpaquePointer?,
            UnsafeMutableRawPointer, UInt32,
            UInt32, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, OpaquePointer?, UnsafeMutableRawPointer,
            UnsafeMutablePointer<UInt32>?,
            UnsafeMutablePointer<UInt32>?
        ) -> UInt32
    private typealias ReleaseBuffer =
        @Sendable @convention(c) (UnsafeMutablePointer<UInt32>, UnsafeMutableRawPointer) -> UInt32
    private typealias ReleaseName =
        @Sendable @convention(c) (UnsafeMutablePointer<UInt32>, UnsafeMutablePointer<OpaquePointer?>) -> UInt32
    private typealias End =
        @Sendable @convention(c) (UnsafeMutablePointer<UInt32>, UnsafeMutablePointer<OpaquePointer?>, OpaquePointer?) ->
        UInt32
    private typealias Acquire =
        @Sendable @convention(c) (
            UnsafeMutablePointer<UInt32>, OpaquePointer?, UnsafeMutableRawPointer, UInt32, UnsafeMutableRawPointer,
            Int32,
            UnsafeMutablePointer<OpaquePointer?>, OpaquePointer?, UnsafeMutablePointer<UInt32>?
        ) -> UInt32
    private typealias ReleaseCredential =
        @Sendable @convention(c) (UnsafeMutablePointer<UInt32>, UnsafeMutablePointer<OpaquePointer?>) -> UInt32
    private let importName: Import
    private let begin: Begin
    private let releaseBuffer: ReleaseBuffer
    private let releaseName: ReleaseName
    private let end: End
    private let acquire: Acquire
    private let releaseCredential: ReleaseCredential

    /// Separate threads, so that a KDC that does not answer delays no other blocking work.
    private let threads = BlockingThreads(limit: 2)

    /// `nil` where the library is not installed.
    package static var shared: TicketLibrary? { search.library }
    private static let search = FoundLibrary { TicketLibrary("libgssapi_krb5.so.2") }

    /// Loads the library for the life of the process.
    package init?(_ path: String) {
        guard let handle = csys_library_open(path), let importName = csys_library_symbol(handle, "gss_import_name"),
            let begin = csys_library_symbol(handle, "gss_init_sec_context"),
            let releaseBuffer = csys_library_symbol(handle, "gss_release_buffer"),
            let releaseName = csys_library_symbol(handle, "gss_release_name"),
            let end = csys_library_symbol(handle, "gss_delete_sec_context"),
            let acquire = csys_library_symbol(handle, "gss_acquire_cred_with_password"),
            let releaseCredential = csys_library_symbol(handle, "gss_release_cred")
        else { return nil }
        self.importName = unsafeBitCast(importName, to: Import.self)
        self.begin = unsafeBitCast(begin, to: Begin.self)
        self.releaseBuffer = unsafeBitCast(releaseBuffer, to: ReleaseBuffer.self)
        self.releaseName = unsafeBitCast(releaseName, to: ReleaseName.self)
        self.end = unsafeBitCast(end, to: End.self)
        self.acquire = unsafeBitCast(acquire, to: Acquire.self)
        self.releaseCredential = unsafeBitCast(releaseCredential, to: ReleaseCredential.self)
        LibraryCalls.loaded()
    }

    /// `gss_channel_bindings_struct`, without addresses.
    private struct Bindings {
        var initiatorKind: UInt32 = 0
        var initiator = Buffer()
        var acceptorKind: UInt32 = 0
        var acceptor = Buffer()
        var data: Buffer
    }
    /// `gss_OID_set_desc`.
    private struct IdentifierSet {
        var count = 1
        var first: UnsafeMutableRawPointer?
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
    /// RFC 2743 §4.1: a host-based service name.
    private static let serviceName: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x12, 1, 2, 1, 4]
    /// RFC 2743 §4.2: a user name.
    private static let userName: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x12, 1, 2, 1, 1]
    /// Mutual authentication. The flag for delegated credentials stays off.
    private static let mutual: UInt32 = 2
    /// The upper bits of a status are errors (RFC 2743 §1.2.1.1).
    private static let failed: UInt32 = 0xFFFF_0000

    /// Creates a context that authenticates to a service on a host, such as `HTTP`.
    /// - Parameters:
    ///   - credential: used in place of the tickets in the user's cache.
    ///   - binding: the channel binding of the TLS connection (RFC 5929), which prevents relaying to another
    ///     connection.
    package func context(
        for service: String, on host: String, as credential: TicketCredential? = nil, bound binding: [UInt8]? = nil
    ) -> TicketContext {
        TicketContext(self, service, host, credential, binding)
    }

    /// Returns a credential for a user and password, acquired from the KDC at first use and held in memory.
    package func credential(user: String, password: String) -> TicketCredential {
        TicketCredential(self, user, password)
    }

    func call(_ token: StopToken, until deadline: Int64, _ work: @escaping @Sendable () -> TicketContext.Step) async
        -> TicketContext.Step
    {
        await threads.call(token, until: deadline) { LibraryCalls.perform(work) ?? .failed } ?? .failed
    }

    func serviceName(_ service: String, _ host: String) -> OpaquePointer? {
        name("\(service)@\(host)", Self.serviceName)
    }

    private func name(_ text: String, _ kind: [UInt8]) -> OpaquePointer? {
        var minor: UInt32 = 0
        var name: OpaquePointer?
        var text = Array(text.utf8)
        var kind = kind
        let imported = text.withUnsafeMutableBytes { text in
            kind.withUnsafeMutableBytes { kind in
                var buffer = Buffer(count: text.count, bytes: text.baseAddress)
                var identifier = Identifier(count: UInt32(kind.count), bytes: kind.baseAddress)
                return importName(&minor, &buffer, &identifier, &name)
            }
        }
        return imported & Self.failed == 0 ? name : nil
    }

    /// Acquires a credential; `nil` if no KDC accepts this user and password.
    func acquire(_ user: String, _ password: String) -> OpaquePointer? {
        var name = name(user, Self.userName)
        guard name != nil else { return nil }
        var minor: UInt32 = 0
        var credential: OpaquePointer?
        var mechanism = Self.negotiation
        var word = Array(password.utf8)
        let status = mechanism.withUnsafeMutableBytes { mechanism in
            word.withUnsafeMutableBytes { word in
                var identifier = Identifier(count: UInt32(mechanism.count), bytes: mechanism.baseAddress)
                return withUnsafeMutableBytes(of: &identifier) { identifier in
                    var set = IdentifierSet(first: identifier.baseAddress)
                    var secret = Buffer(count: word.count, bytes: word.baseAddress)
                    // 1 is GSS_C_INITIATE: the credential initiates contexts.
                    return acquire(&minor, name, &secret, 0, &set, 1, &credential, nil, nil)
                }
            }
        }
        _ = releaseName(&minor, &name)
        return status & Self.failed == 0 ? credential : nil
    }

    func step(
        _ context: inout OpaquePointer?, _ name: OpaquePointer, _ credential: OpaquePointer?, _ binding: [UInt8]?,
        _ input: [UInt8]
    ) -> TicketContext.Step {
        var minor: UInt32 = 0
        var mechanism = Self.negotiation
        var input = input
        var channel = binding ?? []
        var output = Buffer()
        defer { _ = releaseBuffer(&minor, &output) }
        let status = mechanism.withUnsafeMutableBytes { mechanism in
            input.withUnsafeMutableBytes { input in
                channel.withUnsafeMutableBytes { channel in
                    var identifier = Identifier(count: UInt32(mechanism.count), bytes: mechanism.baseAddress)
                    var received = Buffer(count: input.count, bytes: input.baseAddress)
                    var bindings = Bindings(data: Buffer(count: channel.count, bytes: channel.baseAddress))
                    return withUnsafeMutableBytes(of: &bindings) { bindings in
                        begin(
                            &minor, credential, &context, name, &identifier, Self.mutual, 0,
                            binding == nil ? nil : bindings.baseAddress,
                            &received, nil, &output, nil, nil)
                    }
                }
            }
        }
        guard status & Self.failed == 0 else { return .failed }
        let bytes = output.bytes.map { Array(UnsafeRawBufferPointer(start: $0, count: output.count)) } ?? []
        return .continues(sending: bytes, isComplete: status == 0)
    }

    func release(_ context: inout OpaquePointer?, _ name: inout OpaquePointer?) {
        LibraryCalls.perform {
            var minor: UInt32 = 0
            if context != nil { _ = end(&minor, &context, nil) }
            if name != nil { _ = releaseName(&minor, &name) }
        }
    }

    func release(credential: inout OpaquePointer?) {
        LibraryCalls.perform {
            var minor: UInt32 = 0
            if credential != nil { _ = releaseCredential(&minor, &credential) }
        }
    }
}
