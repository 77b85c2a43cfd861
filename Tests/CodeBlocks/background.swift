import URLLoadingCompatibility

private let source = file
private let receiver: (any URLSessionDelegate)? = nil
