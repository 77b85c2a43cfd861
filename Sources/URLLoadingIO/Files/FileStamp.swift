/// What of a file changes when it is written anew: cheap to ask, and no proof.
package struct FileStamp: Sendable, Hashable {
    /// -1 while it cannot be opened.
    private let size: Int64
    private let modified: Int64

    /// Opens and closes it.
    package init(_ path: String) {
        let reader = try? FileReader(path: path)
        size = reader?.size ?? -1
        modified = reader?.modified ?? -1
    }
}
