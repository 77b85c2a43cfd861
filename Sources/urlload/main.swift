import FoundationEssentials
import URLLoading

let url = URL(string: CommandLine.arguments[1])!
var configuration = Configuration.default
if CommandLine.arguments.count > 2 { configuration.tls.roots = .file(CommandLine.arguments[2]) }
let session = Session(configuration)
do {
    for _ in 0..<2 {
    let (data, response) = try await session.data(from: url)
    print(response, data.count, session.connectionsDescription)
    }
} catch { print("error", error) }
session.invalidateAndCancel()
await session.invalidated()
print(session.connectionsDescription)
