package relevance

// Greater is a truth value.
var opGreater = &Op{Type: "Greater", Kind: Opaque}
