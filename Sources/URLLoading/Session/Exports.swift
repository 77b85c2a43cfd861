// The words of HTTP lie on the lowest floor that needs them; whoever imports URLLoading sees the
// public ones as if they were here.
@_exported public import URLLoadingWire
