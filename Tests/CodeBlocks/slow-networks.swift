// SPDX-License-Identifier: Apache-2.0

private let (origin, relay) = (HTTPTestServer?.none!, NetworkRelay?.none!)
private nonisolated(unsafe) var conditions = NetworkConditions()
