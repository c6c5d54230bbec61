package relevance

// Sign is flat but for a jump.
var opSign = &Op{Type: "Sign", Kind: Opaque}
