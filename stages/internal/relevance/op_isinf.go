package relevance

// IsInf is a truth value.
var opIsInf = &Op{Type: "IsInf", Kind: Opaque}
