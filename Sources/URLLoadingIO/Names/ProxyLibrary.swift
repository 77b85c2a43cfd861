// SPDX-License-Identifier: Apache-2.0

// libproxy, if it is installed: resolves the proxies of a URL from the desktop's settings and from PAC scripts. Found
// at run time, never required. Its calls block and may load scripts over the network.

import URLLoadingCSystem

package final class ProxyLibrary: Sendable {
    // A factory is created for each query, because libproxy's own is not thread-safe in all versions.
    private typealias New = @Sendable @convention(c) () -> OpaquePointer?
    private typealias Ask =
        @Sendable @convention(c) (OpaquePointer?, UnsafePointer<CChar>?) -> UnsafeMutablePointer<
            UnsafeMutablePointer<CChar>?
        >?
    private typealias Free = @Sendable @convention(c) (OpaquePointer?) -> Void
    private let new: New
    private let ask: Ask
    private let free: Free

    /// One query at a time, because PAC scripts run in a shared interpreter.
    private let threads = BlockingThreads(limit: 1)

    /// `nil` where libproxy is not installed.
    package static var shared: ProxyLibrary? { search.library }
    /// The search for the system's library.
    package static let search = FoundLibrary { ProxyLibrary("libproxy.so.1") }

    /// Loads the library for the life of the process: its modules may have threads of their own.
    package init?(_ path: String) {
        guard let handle = csys_library_open(path), let new = csys_library_symbol(handle, "px_proxy_factory_new"),
            let ask = csys_library_symbol(handle, "px_proxy_factory_get_proxies"),
            let free = csys_library_symbol(handle, "px_proxy_factory_free")
        else { return nil }
        self.new = unsafeBitCast(new, to: New.self)
        self.ask = unsafeBitCast(ask, to: Ask.self)
        self.free = unsafeBitCast(free, to: Free.self)
        LibraryCalls.loaded()
    }

    package enum Answer: Sendable, Hashable {
        /// Proxy URLs, or `direct://`, in order of preference.
        case proxies([String])
        /// libproxy could not answer; this does not mean that there is no proxy.
        case failed
    }

    /// Returns libproxy's answer for a URL; `nil` if the token was stopped first, in which case the call ends on its
    /// own.
    package func proxies(for url: String, _ token: StopToken) async -> Answer? {
        await threads.call(token) { [self] in LibraryCalls.perform { answer(url) } ?? .failed }
    }

    private func answer(_ url: String) -> Answer {
        guard let factory = new() else { return .failed }
        defer { free(factory) }
        guard let list = ask(factory, url) else { return .failed }
        var answers: [String] = []
        var next = list
        while let text = next.pointee {
            answers.append(String(cString: text))
            csys_free(text)
            next += 1
        }
        csys_free(list)
        return .proxies(answers)
    }
}
