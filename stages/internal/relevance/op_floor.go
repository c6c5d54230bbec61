package relevance

// Floor is flat but for jumps.
var opFloor = &Op{Type: "Floor", Kind: Opaque}
