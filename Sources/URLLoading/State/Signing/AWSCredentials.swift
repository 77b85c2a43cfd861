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
    public static var environment: AWSCredentials? { try? AWSCredentials(of: AWSEnvironment()) }

    /// The credentials of variables; nil without any.
    /// - Throws: ``LoadError/Reason/noCredentials`` for half a key: another one would be another identity.
    init?(of environment: AWSEnvironment) throws(LoadError) {
        let (key, secret) = (environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"])
        guard key != nil || secret != nil else { return nil }
        guard let key, let secret else {
            let missing = key == nil ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY"
            throw .noCredentials("the environment has half a key: \(missing) is not set")
        }
        self.init(accessKey: key, secretKey: secret, sessionToken: environment["AWS_SESSION_TOKEN"])
    }

    /// Loads the credentials of a profile.
    /// - Parameters:
    ///   - name: the profile; `nil` for the one that `AWS_PROFILE` names, or `default`.
    ///   - file: a `file` URL, of at most 1 MiB; `nil` for the file that `AWS_SHARED_CREDENTIALS_FILE` names, or
    ///     `~/.aws/credentials`.
    /// - Throws: ``LoadError/Reason/noCredentials`` if there is no such profile, or no key in it, or if it has other
    ///   credentials than a key: a role, single sign-on, a process. ``LoadError/Reason/cancelled`` if the calling task
    ///   is cancelled while the file is read.
    @concurrent public static func profile(
        _ name: String? = nil, file: URL? = nil
    ) async throws(LoadError) -> AWSCredentials {
        try await profile(name, file: file, AWSEnvironment())
    }

    @concurrent static func profile(
        _ name: String?, file: URL?, _ environment: AWSEnvironment
    ) async throws(LoadError) -> AWSCredentials {
        let path = file?.path(percentEncoded: false) ?? environment.file
        let name = name ?? environment["AWS_PROFILE"] ?? "default"
        let token = StopToken()
        let found = await withTaskCancellationHandler {
            await BlockingThreads.files.call(token) { read(path) }
        } onCancel: {
            token.stop(.cancelled)
        }
        guard let found else { throw LoadError(.cancelled, phase: .preparing) }
        let content: String?
        do throws(IOFailure) { content = try found.get() } catch {
            throw .noCredentials("\(path) cannot be read: \(error.words)")
        }
        guard let text = content else {
            throw .noCredentials("\(path) is no regular file, or has more than \(largestFile) bytes")
        }
        let profiles = AWSProfileFile(text)
        guard profiles.contains(name) else { throw .noCredentials("\(path) has no profile \(name)") }
        // Its key would be another identity than the one that the profile means.
        if let other = profiles.settings(of: name).first(where: isOfOtherSource) {
            throw .noCredentials("the profile \(name) in \(path) has \(other), which is not supported")
        }
        guard let key = profiles.value("aws_access_key_id", of: name),
            let secret = profiles.value("aws_secret_access_key", of: name)
        else { throw .noCredentials("the profile \(name) in \(path) has no key") }
        return AWSCredentials(
            accessKey: key, secretKey: secret, sessionToken: profiles.value("aws_session_token", of: name))
    }

    /// Whether a setting says that the credentials come from elsewhere.
    private static func isOfOtherSource(_ setting: String) -> Bool {
        ["role_arn", "source_profile", "credential_source", "web_identity_token_file", "credential_process"]
            .contains(setting) || setting.hasPrefix("sso_")
    }

    /// Returns the text of a regular file; nil if it is too large, or no regular file. Blocks.
    private static func read(_ path: String) -> Result<String?, IOFailure> {
        Result { () throws(IOFailure) in
            try FileReader.content(of: path, limit: largestFile).map { String(decoding: $0, as: UTF8.self) }
        }
    }

    /// Returns the credentials of the ``environment``, or else those of a ``profile(_:file:)``. Roles, single sign-on,
    /// processes and the metadata of an instance are not asked: give ``AWSSigner`` a closure for those.
    /// - Throws: ``LoadError/Reason/noCredentials``, also if the environment has half a key.
    @concurrent public static func find() async throws(LoadError) -> AWSCredentials {
        try await find(AWSEnvironment())
    }

    @concurrent static func find(_ environment: AWSEnvironment) async throws(LoadError) -> AWSCredentials {
        if let found = try AWSCredentials(of: environment) { return found }
        return try await profile(nil, file: nil, environment)
    }

    private static let largestFile: Int64 = 1 << 20

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

/// The variables of AWS tools. An empty one counts as not set.
struct AWSEnvironment: Sendable {
    var value: @Sendable (String) -> String? = { Environment.value($0) }

    subscript(_ name: String) -> String? { value(name).flatMap { $0.isEmpty ? nil : $0 } }

    /// The path of the file of credentials. A tilde is the home folder, as shells and AWS tools read it.
    var file: String {
        let home = self["HOME"] ?? ""
        guard let path = self["AWS_SHARED_CREDENTIALS_FILE"] else { return home + "/.aws/credentials" }
        return path.hasPrefix("~/") ? home + path.dropFirst() : path
    }
}
