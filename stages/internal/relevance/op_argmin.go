package relevance

// ArgMin is a place: it moves in jumps.
var opArgMin = &Op{Type: "ArgMin", Kind: Opaque}
