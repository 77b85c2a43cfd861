// SPDX-License-Identifier: Apache-2.0

// In this folder: re-exports the classic API under the module's old name

// Provides this library under the name FoundationNetworking, for sources that import that module and cannot be changed.
// Part of the package only when `URLLOADING_SHIM` is set (Package.swift), because it hides the toolchain's module of
// the same name from every target of the build. docs/guides/moving.md explains when to use it.

@_exported public import URLLoadingCompatibility
