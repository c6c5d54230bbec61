package relevance

// Ceil is flat but for jumps.
var opCeil = &Op{Type: "Ceil", Kind: Opaque}
