// Sources that say `import FoundationNetworking`, and cannot be changed, get the layer under that name.
// In the graph only when `URLLOADING_SHIM` is set (Package.swift): it hides the toolchain's module of
// the same name from every target of the build. docs/guides/moving.md says when to use it.

@_exported public import URLLoadingCompatibility
