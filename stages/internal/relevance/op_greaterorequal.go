package relevance

// GreaterOrEqual is a truth value.
var opGreaterOrEqual = &Op{Type: "GreaterOrEqual", Kind: Opaque}
