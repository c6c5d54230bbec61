package relevance

// Round is flat but for jumps.
var opRound = &Op{Type: "Round", Kind: Opaque}
