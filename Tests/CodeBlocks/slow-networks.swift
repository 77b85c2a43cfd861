// SPDX-License-Identifier: Apache-2.0

private let origin = stage.origin
private let relay = NetworkRelay?.none!
private nonisolated(unsafe) var conditions = NetworkConditions()
