// SPDX-License-Identifier: Apache-2.0

// In this folder: one error for a build on another system than Linux

// All Swift targets depend on this one, so that a build for another system ends here, with one error that says what to
// do, in place of hundreds about missing headers. script/platforms tries it.

#if !os(Linux)
#error("URLLoading is for Linux: give the dependency .when(platforms: [.linux]), see docs/guides/apple.md")
#endif
