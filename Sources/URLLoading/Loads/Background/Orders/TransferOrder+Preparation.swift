// SPDX-License-Identifier: Apache-2.0

// The fields that are added to an order at the moment of its submission.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

extension TransferOrder {
    /// Returns an identifier for a transfer: 128 random bits.
    static func newIdentifier() -> String {
        let bytes = secureRandomBytes(16) ?? (0..<16).map { _ in UInt8.random(in: 0...255) }
        return bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// Completes an order at the moment of its submission: HSTS, cookies, and the identities of files.
    func prepared(_ request: Request, _ core: Core, _ handle: LoadHandle) async throws(LoadError) -> (
        TransferOrder, TransferSecrets
    ) {
        var request = request
        if let rules = core.strictTransport, rules.mayConcern(request),
            let secure = await rules.upgrade(request, handle)
        {
            request = secure
        }
        if let jar = core.cookies, jar.mayAttach(to: request), case .success(let destination) = request.destination {
            await jar.store.load(for: handle)
            let cookies = CookieContext(destination.target, request.mainDocumentURL)
            if let field = jar.store.field(for: cookies, most: core.configuration.cookies.maximumFieldSize) {
                request.headers[.cookie] = field
            }
        }
        guard let order = await BlockingThreads.files.call(handle, { identifyingFiles() }) else {
            throw LoadError(handle.stopReason ?? .cancelled, phase: .preparing)
        }
        if kind == .upload, order.sourceStamp == nil {
            throw LoadError(.fileNotFound, phase: .preparing, party: .local, url: request.url, detail: source)
        }
        if let destination = order.destination, order.destinationFolder == nil {
            throw LoadError(
                .cannotCreateFile, phase: .preparing, party: .local, url: request.url,
                detail: "there is no folder \(destination.folder) for the file \(destination)")
        }
        return (order, TransferSecrets(request))
    }

    /// Returns the order with the identities and the permissions of its files, as this process sees them. Blocks.
    fileprivate func identifyingFiles() -> TransferOrder {
        var order = self
        order.destinationFolder = destination.flatMap { FilePlace($0.folder) }
        order.permissionsOfNewFiles = destination.map { _ in FileWriter.permissionsOfNewFiles }
        order.sourceStamp = source.flatMap { SourceStamp(path: $0) }
        return order
    }
}
