// SPDX-License-Identifier: Apache-2.0

private let given = url
private final class Banner: Sendable {
    nonisolated(unsafe) var isHidden = false
}
private let banner = Banner()
