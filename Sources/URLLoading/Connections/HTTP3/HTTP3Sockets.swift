// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import URLLoadingIO

/// How a connection gets its sockets, which all lead to one address of the server.
struct HTTP3SocketMaker: Sendable {
    let peer: SocketAddress
    let setup: SocketSetup
    let mark: SocketMark?
    /// Knows the local address that the system would choose.
    let source: any PathSource

    func make() throws(IOFailure) -> DatagramSocket { try DatagramSocket(to: peer, with: setup, marked: mark) }

    /// Returns a socket with another local address than `present` has, if the system would choose one now.
    func make(apartFrom present: DatagramSocket) -> DatagramSocket? {
        let known = present.localAddress?.octets
        var setup = setup
        if setup.binding == nil {
            guard let local = source.localAddress(towards: peer), local.octets != known else { return nil }
            setup.binding = .address(local.withPort(0))
        }
        guard let socket = try? DatagramSocket(to: peer, with: setup, marked: mark) else { return nil }
        guard let local = socket.localAddress, local.octets != known else {
            socket.close()
            return nil
        }
        return socket
    }
}

/// The sockets of a connection, one for each of its paths. Used by the driver only.
struct HTTP3Sockets {
    struct Path {
        let number: UInt32
        let socket: DatagramSocket
    }
    private(set) var present: Path
    /// The path on which the server is asked for an answer.
    private(set) var asked: Path?

    init(_ first: DatagramSocket) { present = Path(number: 0, socket: first) }

    /// The socket of a path; `nil` if the path was given up.
    subscript(number: UInt32) -> DatagramSocket? {
        number == present.number ? present.socket : number == asked?.number ? asked?.socket : nil
    }

    mutating func ask(on number: UInt32, _ socket: DatagramSocket) {
        asked?.socket.close()
        asked = Path(number: number, socket: socket)
    }

    /// Closes the sockets of paths that were given up.
    /// - Returns: whether the present path is another one now.
    mutating func follow(_ migration: HTTP3Migration) -> Bool {
        guard let asked, migration.asked != asked.number || migration.path == asked.number else { return false }
        self.asked = nil
        guard migration.path == asked.number else {
            asked.socket.close()
            return false
        }
        present.socket.close()
        present = asked
        return true
    }

    func close() {
        present.socket.close()
        asked?.socket.close()
    }
}

#endif
