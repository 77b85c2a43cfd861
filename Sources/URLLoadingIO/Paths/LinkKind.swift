// SPDX-License-Identifier: Apache-2.0

// The kind of a network interface, judged by the kernel's hardware type, by sysfs, and by its name where drivers
// provide nothing better.

import URLLoadingCSystem

package enum LinkKind: Sendable, Hashable {
    case wired, wifi, cellular, loopback, other

    /// The sysfs attributes of an interface; all empty where the interface does not exist or belongs to another network
    /// namespace.
    package struct Facts: Sendable, Hashable {
        /// True if the interface has a directory `wireless` or `phy80211`.
        package var isWireless = false
        /// DEVTYPE in `uevent`.
        package var deviceType: String?
    }

    package static func make(_ link: PathLink, _ facts: Facts) -> LinkKind {
        if link.isLoopback { return .loopback }
        // 519 is ARPHRD_RAWIP: modems that carry IP without frames.
        if facts.deviceType == "wwan" || link.hardware == 519 { return .cellular }
        if facts.isWireless || facts.deviceType == "wlan" { return .wifi }
        if ["wwan", "rmnet", "ppp"].contains(where: { link.name.hasPrefix($0) }) { return .cellular }
        // 1 is ARPHRD_ETHER, which includes bridges, virtual pairs and bonds. Tunnels have no hardware type.
        return link.hardware == 1 ? .wired : .other
    }

    package static func of(_ link: PathLink) -> LinkKind { make(link, Facts(of: link.name)) }
}

extension LinkKind.Facts {
    package init(of name: String, root: String = "/sys/class/net") {
        self.init()
        // The kernel allows no such names; the check keeps a path from leaving the sysfs folder in any case.
        guard !name.isEmpty, name != ".", name != "..",
            !name.utf8.contains(where: { $0 == UInt8(ascii: "/") || $0 == 0 })
        else { return }
        isWireless = Self.exists("\(root)/\(name)/wireless") || Self.exists("\(root)/\(name)/phy80211")
        deviceType = Self.text("\(root)/\(name)/uevent").split(separator: "\n")
            .first { $0.hasPrefix("DEVTYPE=") }.map { String($0.dropFirst("DEVTYPE=".count)) }
    }

    private static func exists(_ path: String) -> Bool {
        var info = csys_file_info()
        let descriptor = csys_file_open(path, &info)
        guard descriptor >= 0 else { return false }
        _ = csys_close(descriptor)
        return true
    }

    /// Reads a sysfs file, which is never longer than a page.
    private static func text(_ path: String) -> Substring {
        var info = csys_file_info()
        let descriptor = csys_file_open(path, &info)
        guard descriptor >= 0 else { return "" }
        defer { _ = csys_close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = bytes.withUnsafeMutableBytes { csys_file_read(descriptor, $0.baseAddress, $0.count, 0) }
        return count > 0 ? Substring(decoding: bytes[..<count], as: UTF8.self) : ""
    }
}
