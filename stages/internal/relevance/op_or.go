package relevance

// Or is a truth value.
var opOr = &Op{Type: "Or", Kind: Opaque}
