package relevance

// And is a truth value.
var opAnd = &Op{Type: "And", Kind: Opaque}
