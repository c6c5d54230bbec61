package relevance

// Range counts.
var opRange = &Op{Type: "Range", Kind: Opaque}
