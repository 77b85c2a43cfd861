private let (anHourAgo, page) = (Date.now, file)
private func showCount(_ count: Int) {}
