package relevance

// Constant depends on nothing.
var opConstant = &Op{Type: "Constant", Kind: Opaque}
