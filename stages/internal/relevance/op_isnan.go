package relevance

// IsNaN is a truth value.
var opIsNaN = &Op{Type: "IsNaN", Kind: Opaque}
