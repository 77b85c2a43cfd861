// SPDX-License-Identifier: Apache-2.0

private let company = String(decoding: try! TestCertificateAuthority(commonName: "Company").pem, as: UTF8.self)
private let text = "sha256//" + String(repeating: "A", count: 43) + "="
private let (certificateFile, keyFile) = (file, file)
private let identity = ClientIdentity?.none!
private let renewed = identity
private let trust = ServerTrust?.none!
private struct User { func accepts(_ trust: ServerTrust) async -> Bool { false } }
private let user = User()
