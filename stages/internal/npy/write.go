package npy

import "github.com/runexp/runexp/stages"

// Encode returns t as the bytes of an .npy file.
func Encode(t stages.Tensor) []byte { return append(stages.NPYHeader(t.DType, t.Shape...), t.Raw...) }
