// SPDX-License-Identifier: Apache-2.0

private let task = session.downloadTask(Request(url: url))
private let token = ResumeToken?.none!
private func store(_ token: Data?) throws {}
private func store(_ token: String) throws {}
private let sum = String(repeating: "0", count: 64)
