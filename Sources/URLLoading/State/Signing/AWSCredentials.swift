// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// An access key of AWS, or of a service that is compatible with it.
///
/// ```swift
/// let credentials = try await AWSCredentials.find()
/// ```
/// Neither its description nor its reflection shows a secret.
public struct AWSCredentials: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    /// The access key's identifier, which is not secret.
    public let accessKey: String
    let secretKey: String
    let sessionToken: String?

    /// Creates credentials.
    /// - Parameters:
    ///   - accessKey: the identifier of the key.
    ///   - secretKey: the secret of the key.
    ///   - sessionToken: the token of temporary credentials.
    public init(accessKey: String, secretKey: String, sessionToken: String? = nil) {
        self.accessKey = accessKey
        self.secretKey = secretKey
        self.sessionToken = sessionToken
    }

    /// The credentials of the environment: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`; `nil`
    /// unless the first two are set.
    public static var environment: AWSCredentials? {
        func value(_ name: String) -> String? { Environment.value(name).flatMap { $0.isEmpty ? nil : $0 } }
        guard let key = value("AWS_ACCESS_KEY_ID"), let secret = value("AWS_SECRET_ACCESS_KEY") else { return nil }
        return AWSCredentials(accessKey: key, secretKey: secret, sessionToken: value("AWS_SESSION_TOKEN"))
    }

    /// Loads the credentials of a profile.
    /// - Parameters:
    ///   - name: the profile; `nil` for the one that `AWS_PROFILE` names, or `default`.
    ///   - file: a `file` URL; `nil` for the file that `AWS_SHARED_CREDENTIALS_FILE` names, or `~/.aws/credentials`.
    /// - Throws: ``LoadError/Reason/noCredentials`` if there is no such profile, or no key in it.
    @concurrent public static func profile(
        _ name: String? = nil, file: URL? = nil
    ) async throws(LoadError) -> AWSCredentials {
        let path =
            file?.path(percentEncoded: false) ?? Environment.value("AWS_SHARED_CREDENTIALS_FILE") ?? Self.standard
        let name = name ?? Environment.value("AWS_PROFILE") ?? "default"
        guard let text = try? Data(contentsOf: URL(filePath: path)), text.count <= largestFile else {
            throw .noCredentials("\(path) cannot be read")
        }
        let profiles = AWSProfileFile(String(decoding: text, as: UTF8.self))
        guard profiles.contains(name) else { throw .noCredentials("\(path) has no profile \(name)") }
        guard let key = profiles.value("aws_access_key_id", of: name),
            let secret = profiles.value("aws_secret_access_key", of: name)
        else { throw .noCredentials("the profile \(name) in \(path) has no key") }
        return AWSCredentials(
            accessKey: key, secretKey: secret, sessionToken: profiles.value("aws_session_token", of: name))
    }

    /// Returns the credentials of the ``environment``, or else those of a ``profile(_:file:)``. Roles, single sign-on,
    /// processes and the metadata of an instance are not asked: give ``AWSSigner`` a closure for those.
    /// - Throws: ``LoadError/Reason/noCredentials``.
    @concurrent public static func find() async throws(LoadError) -> AWSCredentials {
        if let environment { return environment }
        return try await profile()
    }

    private static let largestFile = 1 << 20
    private static var standard: String { (Environment.value("HOME") ?? "") + "/.aws/credentials" }

    /// `access key AKIDEXAMPLE`.
    public var description: String { "access key \(accessKey)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["accessKey": accessKey]) }
}

extension LoadError.Reason {
    /// There are no credentials where they were looked for (``AWSCredentials/find()``).
    public static let noCredentials = Self("noCredentials", -1000)
}

extension LoadError {
    fileprivate static func noCredentials(_ words: String) -> LoadError {
        LoadError(.noCredentials, phase: .preparing, party: .local, detail: words)
    }
}
