package relevance

// EyeLike asks for a shape alone.
var opEyeLike = &Op{Type: "EyeLike", Kind: Opaque}
