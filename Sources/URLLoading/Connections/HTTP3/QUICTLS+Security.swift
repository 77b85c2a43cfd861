// SPDX-License-Identifier: Apache-2.0

// In this folder: HTTP/3, where the codec of the wire layer meets the TLS and the sockets of the IO layer

#if HTTP3

package import URLLoadingIO
import URLLoadingWire

extension QUICTLS: QUICSecurity {}

#endif
