package relevance

// Not is a truth value.
var opNot = &Op{Type: "Not", Kind: Opaque}
