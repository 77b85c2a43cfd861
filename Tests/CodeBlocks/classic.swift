// SPDX-License-Identifier: Apache-2.0

private let (film, content, error, host, port) = (url, Data(), URLError(.unknown) as any Error, "", 7)
private struct Logger { func error(_ text: String) {} }
private let logger = Logger()
private struct Policy { func allows(_ response: URLResponse) async -> Bool { true } }
private let policy = Policy()
private let queue = OperationQueue()
nonisolated(unsafe) private let reader = NSObject()
