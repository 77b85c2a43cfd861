import URLLoadingCSystem

/// A lock between processes: held until it is dropped, and by nobody when its process has died. The file it is made
/// on stays, empty, readable by its owner alone.
package final class FileLock: Sendable {
    private let descriptor: Int32

    /// Waits for whoever holds it; `nil` if the file cannot be made. Blocks.
    package init?(_ path: String) {
        descriptor = csys_lock_file_open(path)
        guard descriptor >= 0 else { return nil }
    }

    deinit { if descriptor >= 0 { _ = csys_close(descriptor) } }
}
