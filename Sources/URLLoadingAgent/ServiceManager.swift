// SPDX-License-Identifier: Apache-2.0

// The interface to service managers: sd_listen_fds(3), sd_notify(3), sd_watchdog_enabled(3).

import URLLoadingIO

struct ServiceManager: Sendable {
    private let notify: SocketAddress?
    /// The nanoseconds between watchdog notifications; `nil` without a watchdog.
    let watchdog: Int64?
    /// The first descriptor of the passed sockets; `nil` without any.
    let listener: Int32?

    init(_ environment: [String: String], process: Int32) {
        notify = environment["NOTIFY_SOCKET"].flatMap { path in
            path.hasPrefix("@") ? try? .abstractUnix(String(path.dropFirst())) : try? .unix(path)
        }
        let isForThisProcess = environment["WATCHDOG_PID"].map { $0 == String(process) } ?? true
        let microseconds = environment["WATCHDOG_USEC"].flatMap { Int64($0) }.flatMap { $0 > 0 ? $0 : nil }
        watchdog = isForThisProcess ? microseconds.map { min($0, 1 << 40) * 500 } : nil
        let count = environment["LISTEN_FDS"].flatMap { Int($0) } ?? 0
        listener = count > 0 && environment["LISTEN_PID"] == String(process) ? 3 : nil
    }

    /// Notifies the service manager, if there is one: `READY=1`, `STATUS=…`.
    func notify(_ lines: String...) {
        if let notify { LocalDatagram.send(lines.joined(separator: "\n"), to: notify) }
    }
}
