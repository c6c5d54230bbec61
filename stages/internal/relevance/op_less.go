package relevance

// Less is a truth value.
var opLess = &Op{Type: "Less", Kind: Opaque}
