// Folders that are this user's alone. What somebody else owns or may write to is not used: he could put in place of
// our files what he likes.

import Glibc
import URLLoadingCSystem

package enum PrivateFolder {
    /// Makes a folder and those above it, or takes one that is there. Blocks.
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

    /// Whether it is there; throws if it is not ours alone, or no folder (a link to one is none).
    package static func isUsable(_ path: String) throws(IOFailure) -> Bool {
        var info = csys_path_info()
        let outcome = csys_path_look(path, &info)
        if outcome == -ENOENT { return false }
        guard outcome >= 0 else { throw IOFailure(.system(-outcome), .open) }
        guard info.is_directory else { throw IOFailure(.system(ENOTDIR), .open) }
        guard info.is_own else { throw IOFailure(.system(EPERM), .open) }
        return true
    }

    /// The names in it, at most so many; none if it cannot be read. Blocks.
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

/// What a path names, and not what a link leads to.
package struct PathIdentity: Sendable, Equatable {
    private let device: UInt64
    private let number: UInt64
    /// A regular file of ours that nobody else may write to.
    package let isOwnFile: Bool

    /// `nil` if there is nothing. May block.
    package init?(_ path: String) {
        var info = csys_path_info()
        guard csys_path_look(path, &info) >= 0 else { return nil }
        device = info.device
        number = info.number
        isOwnFile = info.is_regular && info.is_own
    }
}

extension PrivateFolder {
    /// Makes an empty file of this user's, unless it is there; returns its identity. A descriptor is opened only for
    /// one that is new: closing one would take away the locks that SQLite has on the file.
    package static func makeFile(_ path: String) throws(IOFailure) -> PathIdentity {
        if PathIdentity(path) == nil {
            let descriptor = csys_file_create(path)
            guard descriptor >= 0 || descriptor == -EEXIST else { throw IOFailure(.system(-descriptor), .open) }
            if descriptor >= 0 { _ = csys_close(descriptor) }
        }
        guard let identity = PathIdentity(path), identity.isOwnFile else { throw IOFailure(.system(EPERM), .open) }
        return identity
    }

    /// Whether other users may read or write a file, or one of them, who is not root, owns it; `false` if there is none.
    /// Links are followed. Blocks.
    package static func isOpenToOthers(_ path: String) -> Bool {
        var info = stat()
        guard stat(path, &info) == 0 else { return false }
        return info.st_mode & 0o077 != 0 || info.st_uid != geteuid() && info.st_uid != 0
    }

    /// Takes from everybody else what he may do with a file. Blocks.
    package static func hide(_ path: String) { _ = chmod(path, 0o600) }
    /// Removes a file. Blocks.
    package static func remove(_ path: String) { _ = csys_file_remove(path) }
    /// Gives a file another name, in place of what had it. Blocks.
    package static func rename(_ path: String, _ other: String) { _ = csys_file_rename(path, other) }
}

extension IOFailure {
    /// No room on the disk, or the quota is used up, or files may not grow as large.
    package var isFull: Bool {
        switch code {
        case .system(ENOSPC), .system(EDQUOT), .system(EFBIG): true
        default: false
        }
    }
}

extension IOFailure {
    /// The process, or the machine, has no descriptor left.
    package var isOutOfDescriptors: Bool {
        switch code {
        case .system(EMFILE), .system(ENFILE): true
        default: false
        }
    }
}

extension IOFailure {
    /// The process, or the machine, has no more of something for now, or somebody else has it.
    package var isPassing: Bool {
        switch code {
        case .system(EMFILE), .system(ENFILE), .system(ENOMEM), .system(EINTR), .system(EWOULDBLOCK): true
        default: false
        }
    }
}

extension IOFailure {
    /// What should have been ours alone was not.
    package var isForeign: Bool {
        switch code {
        case .system(EPERM), .system(ENOTDIR), .system(ELOOP): true
        default: false
        }
    }
}
