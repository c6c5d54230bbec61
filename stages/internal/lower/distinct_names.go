package lower

import (
	"slices"
	"strings"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// ONNX Runtime gives a weight that it creates, such as the shape of a Reshape around a Gemm, a name that no
// node has, and fails if a weight has this name already: "Attempt to replace the existing tensor". So the
// weights that it has created, in this process or before a file was saved, are renamed wherever it
// optimises again: when it simplifies, and when it loads a program.

// distinctNames renames the weights of a file that have such a name.
func (u *unit) distinctNames() error {
	rename(u.model, func(t *onnxpb.TensorProto) bool {
		return strings.HasPrefix(t.Name, "gemm_") || strings.HasPrefix(t.Name, "mobileclip_") ||
			strings.HasSuffix(t.Name, "_new_shape")
	})
	return nil
}

// rename gives the weights that made selects names that ONNX Runtime doesn't create.
func rename(m *onnx.Model, made func(*onnxpb.TensorProto) bool) {
	returned := func(name string) bool {
		return slices.ContainsFunc(m.Proto.Graph.Output,
			func(v *onnxpb.ValueInfoProto) bool { return v.Name == name })
	}
	names := map[string]string{}
	for _, t := range m.Proto.Graph.Initializer {
		if made(t) && !returned(t.Name) {
			names[t.Name] = m.Fresh("known/" + t.Name)
		}
	}
	m.Rename(names)
}
