// SPDX-License-Identifier: Apache-2.0

private struct Account { func newToken() async throws -> String { "" } }
private let account = Account()
private let saved = "t0"
