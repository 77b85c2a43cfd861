// SPDX-License-Identifier: Apache-2.0

// The state shared by a server's connections and its test, and one connection: served by a script or by the routes.

#if HTTP3

import Synchronization
import URLLoadingIO

struct HTTP3ServerState: RecordingState {
    var record: ServerRecord<HTTP3ServerConnection>
    var scripts: [(connection: Int?, script: HTTP3TestServer.Script)] = []
    var complaints: [String] = []
    var frames: MostRecent<HTTP3TestServer.RecordedFrame>
    var endings: MostRecent<HTTP3TestServer.RecordedEnding>
    /// `nil` until it is set: the tickets then permit no early data.
    var acceptsEarlyData: Bool?

    init(recordedRequests: Int) {
        record = ServerRecord(recordedRequests: recordedRequests)
        frames = MostRecent(recordedRequests)
        endings = MostRecent(recordedRequests)
    }

    var shown: String {
        let complained = complaints.isEmpty ? "" : "; complaints: \(complaints.shown())"
        return "\(record.counts); frames: \(frames.all.shown()); endings: \(endings.all.shown())\(complained)"
    }

    func script(for connection: Int) -> HTTP3TestServer.Script? {
        scripts.last { $0.connection ?? connection == connection }?.script
    }

    mutating func openStream() {
        record.counts.requests += 1
        record.counts.openStreams += 1
        record.counts.mostOpenStreams = max(record.counts.mostOpenStreams, record.counts.openStreams)
    }
}

final class HTTP3ServerConnection: ServedConnection {
    let peer: HTTP3Peer
    private let routes = Lock<HTTP3Routes?>(nil)

    init(_ peer: HTTP3Peer) { self.peer = peer }

    /// Ends the connection from outside.
    func end() { peer.close() }

    func goAway() { routes.withLock { $0 }?.goAway() }

    func serve() async {
        let server = peer.server
        let script = server.state.withLock { $0.script(for: peer.connection) }
        await withDiscardingTaskGroup { group in
            group.addTask { await self.peer.drive() }
            if let script {
                await play(script)
                await peer.drain()
            } else {
                let routes = HTTP3Routes(peer)
                self.routes.withLock { $0 = routes }
                await routes.run()
            }
            peer.close()
        }
        server.listener.remove(peer)
        server.change { $0.record.close(peer.connection) }
    }

    private func play(_ script: HTTP3TestServer.Script) async {
        do { try await script(peer) } catch let failure as HTTP3Peer.Failure {
            // The complaint was recorded where the failure occurred.
            if case .streamReset = failure { _ = peer.complain("\(failure)") }
        } catch is CancellationError {
        } catch {
            _ = peer.complain("the script failed: \(error)")
        }
        peer.server.change { $0.record.counts.scriptsEnded += 1 }
    }
}

#endif
