private let given = file
private final class Banner: Sendable {
    nonisolated(unsafe) var isHidden = false
}
private let banner = Banner()
