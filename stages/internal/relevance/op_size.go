package relevance

// Size is the same for every image.
var opSize = &Op{Type: "Size", Kind: Opaque}
