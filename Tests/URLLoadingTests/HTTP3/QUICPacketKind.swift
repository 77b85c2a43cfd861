// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import URLLoadingWire

/// What the first bytes of a packet tell of it, without a key (RFC 9000 §17).
enum QUICPacketKind: UInt8 {
    case initial, early, handshake, retry, short

    /// Returns the packets of a datagram, which may hold several with long headers (RFC 9000 §12.2).
    static func all(in datagram: some Collection<UInt8>) -> [QUICPacketKind] {
        var (rest, kinds) = (Array(datagram)[...], [QUICPacketKind]())
        while let first = rest.first {
            guard first & 0x80 != 0 else { return kinds + [.short] }
            guard let kind = QUICPacketKind(rawValue: first >> 4 & 3) else { break }
            kinds.append(kind)
            rest = rest.dropFirst(5)
            for _ in 0..<2 { rest = rest.dropFirst(1 + Int(rest.first ?? 0)) }
            if kind == .initial {
                guard let (count, size) = QUICInteger.read(rest) else { break }
                rest = rest.dropFirst(size + Int(clamping: count))
            }
            guard kind != .retry, let (count, size) = QUICInteger.read(rest) else { break }
            rest = rest.dropFirst(size + Int(clamping: count))
        }
        return kinds
    }
}

#endif
