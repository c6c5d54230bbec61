package relevance

// Shape is the same for every image.
var opShape = &Op{Type: "Shape", Kind: Opaque}
