private let cache = ResponseCache(memoryCapacity: 1)
