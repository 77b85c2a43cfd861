// SPDX-License-Identifier: Apache-2.0

private let path = folder.appending(path: "top").path(percentEncoded: false)
private let task = {
    let task = session.dataTask(from: url)
    task.resume()
    return task
}()
