private let content = Data()
