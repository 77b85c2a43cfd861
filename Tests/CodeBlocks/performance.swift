private func crawl(_ session: Session) async {}
