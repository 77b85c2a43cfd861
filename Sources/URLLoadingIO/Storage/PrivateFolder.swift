// SPDX-License-Identifier: Apache-2.0

// Folders that belong to this user alone. A folder that another user owns or may write to is refused, because that user
// could replace the files in it.

import Glibc
import URLLoadingCSystem

package enum PrivateFolder {
    /// Creates a folder and its parents, or accepts an existing one. Blocks.
    package static func make(_ path: String) throws(IOFailure) {
        if try isUsable(path) { return }
        if let slash = path.lastIndex(of: "/"), slash != path.startIndex {
            let above = String(path[..<slash])
            var info = csys_path_info()
            if csys_path_look(above, &info) == -ENOENT { try make(above) }
        }
        let outcome = csys_directory_make(path)
        guard outcome >= 0 || outcome == -EEXIST else { throw IOFailure(.system(-outcome), .open) }
        guard try isUsable(path) else { throw IOFailure(.system(ENOTDIR), .open) }
    }

    /// Returns whether the folder exists; throws if it is not this user's alone or not a folder (a link to one does not
    /// count).
    package static func isUsable(_ path: String) throws(IOFailure) -> Bool {
        var info = csys_path_info()
        let outcome = csys_path_look(path, &info)
        if outcome == -ENOENT { return false }
        guard outcome >= 0 else { throw IOFailure(.system(-outcome), .open) }
        guard info.is_directory else { throw IOFailure(.system(ENOTDIR), .open) }
        guard info.is_own else { throw IOFailure(.system(EPERM), .open) }
        return true
    }

    /// Returns at most `limit` names in the folder; none if it cannot be read. Blocks.
    package static func names(_ path: String, atMost limit: Int = .max) -> [String] {
        guard let stream = opendir(path) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while names.count < limit, let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}

/// Identifies the file at a path by device and inode, without following a symbolic link.
package struct PathIdentity: Sendable, Equatable {
    private let device: UInt64
    private let number: UInt64
    /// True for a regular file of this user that no other user may write to.
    package let isOwnFile: Bool

    /// Reads the identity; `nil` if there is no file, or if that cannot be told. May block.
    package init?(_ path: String) {
        guard let found = try? Self.find(path) else { return nil }
        self = found
    }

    /// Reads the identity; `nil` if there is no file. May block.
    package static func find(_ path: String) throws(IOFailure) -> PathIdentity? {
        var info = csys_path_info()
        let outcome = csys_path_look(path, &info)
        if outcome == -ENOENT { return nil }
        guard outcome >= 0 else { throw IOFailure(.system(-outcome), .open) }
        return PathIdentity(info)
    }

    private init(_ info: csys_path_info) {
        device = info.device
        number = info.number
        isOwnFile = info.is_regular && info.is_own
    }
}

extension PrivateFolder {
    /// Creates an empty file of this user unless it exists; returns its identity. Opens a descriptor only for a new
    /// file, because closing one would release SQLite's locks on an existing file.
    package static func makeFile(_ path: String) throws(IOFailure) -> PathIdentity {
        if PathIdentity(path) == nil {
            let descriptor = csys_file_create(path)
            guard descriptor >= 0 || descriptor == -EEXIST else { throw IOFailure(.system(-descriptor), .open) }
            if descriptor >= 0 { _ = csys_close(descriptor) }
        }
        guard let identity = PathIdentity(path), identity.isOwnFile else { throw IOFailure(.system(EPERM), .open) }
        return identity
    }

    /// Returns whether other users may read or write a file, or whether a user other than this one or root owns it;
    /// `false` if it does not exist. Follows links. Blocks.
    package static func isOpenToOthers(_ path: String) -> Bool {
        var info = stat()
        guard stat(path, &info) == 0 else { return false }
        return info.st_mode & 0o077 != 0 || info.st_uid != geteuid() && info.st_uid != 0
    }

    /// Removes all other users' permissions for a file. Blocks.
    package static func hide(_ path: String) { _ = chmod(path, 0o600) }
    /// Removes a file. Blocks.
    package static func remove(_ path: String) { _ = csys_file_remove(path) }
    /// Renames a file, replacing an existing one. Blocks.
    package static func rename(_ path: String, _ other: String) { _ = csys_file_rename(path, other) }
}

extension IOFailure {
    /// True if the disk is full, the quota is used up, or the file would exceed the size limit.
    package var isFull: Bool {
        switch code {
        case .system(ENOSPC), .system(EDQUOT), .system(EFBIG): true
        default: false
        }
    }
}

extension IOFailure {
    /// True if the process or the machine is out of file descriptors.
    package var isOutOfDescriptors: Bool {
        switch code {
        case .system(EMFILE), .system(ENFILE): true
        default: false
        }
    }
}

extension IOFailure {
    /// True for a temporary failure: a resource is exhausted for now, or another holder has the lock.
    package var isTemporary: Bool {
        switch code {
        case .system(EMFILE), .system(ENFILE), .system(ENOMEM), .system(EINTR), .system(EWOULDBLOCK): true
        default: false
        }
    }
}

extension IOFailure {
    /// True if a disk or a file server did not answer: what it has may be there later.
    package var isUnanswered: Bool {
        switch code {
        case .system(EIO), .system(ESTALE), .system(ETIMEDOUT), .system(EHOSTDOWN), .system(ENOTCONN): true
        default: false
        }
    }
}

extension IOFailure {
    /// True if this user may not even look.
    package var isDenied: Bool {
        if case .system(EACCES) = code { true } else { false }
    }
}

extension IOFailure {
    /// True if another holder has the lock.
    package var isLocked: Bool {
        if case .system(EWOULDBLOCK) = code { true } else { false }
    }
}

extension IOFailure {
    /// True if a file or its folder does not exist.
    package var isMissing: Bool {
        if case .system(ENOENT) = code { true } else { false }
    }
}

extension IOFailure {
    /// True if a file or folder that should be this user's alone is not.
    package var isForeign: Bool {
        switch code {
        case .system(EPERM), .system(ENOTDIR), .system(ELOOP): true
        default: false
        }
    }
}
