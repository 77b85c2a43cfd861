private let source = file
