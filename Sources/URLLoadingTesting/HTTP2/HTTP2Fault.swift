/// x
public struct HTTP2Fault: Sendable { let script: HTTP2TestServer.Script }
