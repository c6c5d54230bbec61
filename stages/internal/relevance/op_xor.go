package relevance

// Xor is a truth value.
var opXor = &Op{Type: "Xor", Kind: Opaque}
