package relevance

// ConstantOfShape depends on nothing but a shape.
var opConstantOfShape = &Op{Type: "ConstantOfShape", Kind: Opaque}
