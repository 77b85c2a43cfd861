// SPDX-License-Identifier: Apache-2.0

private protocol LoaderDelegate: AnyObject {
    func loader(_ loader: AnyObject, didLoad data: Data)
    func loader(_ loader: AnyObject, didFailWith error: any Error)
}
