// SPDX-License-Identifier: Apache-2.0

private let (company, text) = ("", "")
private let (certificateFile, keyFile) = (file, file)
private let identity = ClientIdentity?.none!
private let (renewed, trust) = (identity, ServerTrust?.none!)
private struct User { func accepts(_ trust: ServerTrust) async -> Bool { false } }
private let user = User()
