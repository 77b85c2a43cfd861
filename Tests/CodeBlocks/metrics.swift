private let (task, path) = (session.dataTask(from: url), "")
