// SPDX-License-Identifier: Apache-2.0
import Glibc
import Synchronization

package enum Knob {
    package static func number(_ name: String, _ otherwise: Int) -> Int {
        getenv(name).flatMap { Int(String(cString: $0)) } ?? otherwise
    }
    package static let gather = number("URLX_GATHER", 120_000)
    package static let keep = number("URLX_KEEP", 0)
    package static let tlsBuffer = number("URLX_TLSBUF", 128 * 1024)
    package static let chunk = number("URLX_CHUNK", 256 * 1024)
    package static let connect = number("URLX_CONNECT", 0)
    package static let connecting = Atomic<Int>(0)
}
