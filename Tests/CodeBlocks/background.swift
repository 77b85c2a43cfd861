private let source = URL(filePath: "/")
