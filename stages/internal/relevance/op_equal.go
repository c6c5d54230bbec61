package relevance

// Equal is a truth value.
var opEqual = &Op{Type: "Equal", Kind: Opaque}
