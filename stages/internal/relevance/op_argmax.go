package relevance

// ArgMax is a place: it moves in jumps.
var opArgMax = &Op{Type: "ArgMax", Kind: Opaque}
