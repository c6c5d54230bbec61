package relevance

// OneHot writes constants at places: they move in jumps.
var opOneHot = &Op{Type: "OneHot", Kind: Opaque}
