package relevance

// NonZero are places: they move in jumps.
var opNonZero = &Op{Type: "NonZero", Kind: Opaque}
