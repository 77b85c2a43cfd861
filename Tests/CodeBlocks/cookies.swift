// SPDX-License-Identifier: Apache-2.0

private let (anHourAgo, page) = (Date.now, file)
private func showCount(_ count: Int) {}
