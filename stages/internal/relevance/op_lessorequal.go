package relevance

// LessOrEqual is a truth value.
var opLessOrEqual = &Op{Type: "LessOrEqual", Kind: Opaque}
