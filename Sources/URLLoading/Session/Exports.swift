// SPDX-License-Identifier: Apache-2.0

// The types of HTTP are declared in the lowest layer that needs them; URLLoading re-exports the public ones to its
// importers.
@_exported public import URLLoadingWire
