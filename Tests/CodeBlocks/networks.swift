// SPDX-License-Identifier: Apache-2.0

private let given = file
private final class Banner: Sendable {
    nonisolated(unsafe) var isHidden = false
}
private let banner = Banner()
