// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import URLLoadingIO

/// A netrc file of users and passwords by host: `machine example.org login ada password secret`.
///
/// The file is read once per session, at the first challenge that no other source answers; after a failure of the
/// system, such as too many open files, at the next one again. An entry applies to servers of that name, on any port,
/// and to no proxy. An entry without a password is ignored; the password may stand anywhere in the entry.
public struct Netrc: Sendable, Hashable {
    let path: String?

    /// The file that `NETRC` names, or `~/.netrc`.
    public static let standard = Netrc(path: nil)

    /// A file in the format of netrc.
    /// - Parameter url: a `file` URL.
    public static func file(_ url: URL) -> Netrc { Netrc(path: url.path(percentEncoded: false)) }

    /// A description of the file's insecure permissions: other users may read it, or one of them owns it. `nil` if only
    /// this user can access it, or if it does not exist. The file is read in any case.
    ///
    /// ```swift
    /// if let problem = Netrc.standard.problem { log.warning("\(problem)") }
    /// ```
    /// Checks the file at each call, and may block.
    public var problem: String? {
        let path = path ?? NetrcReader.standardPath
        guard PrivateFolder.isOpenToOthers(path) else { return nil }
        return "\(path): other users can read the passwords in it, or write to it; chmod 600 makes it yours alone"
    }
}
