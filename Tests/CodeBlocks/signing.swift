// SPDX-License-Identifier: Apache-2.0

private let key = SigningKey.hmacSHA256(Array("a secret of 32 bytes at the least".utf8))
private let publicKey = key
private let credentials = AWSCredentials(accessKey: "AKIDEXAMPLE", secretKey: "secret")
private let signer = AWSSigner(credentials: credentials, region: "eu-central-1", service: "s3")
private func proof(of request: SigningRequest, _ digest: [UInt8]) async throws -> String {
    "\(request.target) \(digest)"
}
