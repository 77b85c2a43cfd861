private let task = session.dataTask(from: url)
