// libproxy, if it is installed: what the desktop's settings, and the scripts they name, say of a URL. Found at run
// time and never required. Its calls block, and load scripts over the network.

import URLLoadingCSystem

package final class ProxyLibrary: @unchecked Sendable {
    // Unchecked: pointers to functions, set once. A factory is made for each question, for the library's own is not
    // safe among threads in all its versions.
    private typealias New = @convention(c) () -> OpaquePointer?
    private typealias Ask =
        @convention(c) (OpaquePointer?, UnsafePointer<CChar>?) -> UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
    private typealias Free = @convention(c) (OpaquePointer?) -> Void
    private let new: New
    private let ask: Ask
    private let free: Free

    /// One question at a time: scripts run in an interpreter that is shared.
    private let threads = BlockingThreads(limit: 1)

    /// `nil` where there is none.
    package static let shared: ProxyLibrary? = ProxyLibrary("libproxy.so.1")

    /// Stays loaded for the life of the process: its modules may have threads of their own.
    package init?(_ path: String) {
        guard let handle = csys_library_open(path), let new = csys_library_symbol(handle, "px_proxy_factory_new"),
            let ask = csys_library_symbol(handle, "px_proxy_factory_get_proxies"),
            let free = csys_library_symbol(handle, "px_proxy_factory_free")
        else { return nil }
        self.new = unsafeBitCast(new, to: New.self)
        self.ask = unsafeBitCast(ask, to: Ask.self)
        self.free = unsafeBitCast(free, to: Free.self)
    }

    package enum Answer: Sendable, Hashable {
        /// In order of preference.
        case ways([String])
        /// It cannot say: this is not the same as that there is no proxy.
        case failed
    }

    /// What it answers for a URL; `nil` if the token was stopped first. The call then goes on alone.
    package func proxies(for url: String, _ token: StopToken) async -> Answer? {
        await threads.call(token) { [self] in
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
            return .ways(answers)
        }
    }
}
