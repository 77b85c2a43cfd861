// SPDX-License-Identifier: Apache-2.0

private func index(_ data: Data, of url: URL) async {}
private func note(_ url: URL, _ reason: String) async {}
private func crawl(_ session: Session) async {}
