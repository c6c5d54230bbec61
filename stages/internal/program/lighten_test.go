package program_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
)

// TestLighten holds that ONNX Runtime simplifies a net without the weights that only
// multiply matrices to what it makes of it with them. Of equal constants it keeps one or
// the other.
func TestLighten(t *testing.T) {
	modeltest.Runtime(t)
	taken := 0
	for name, p := range nets(t, true) {
		t.Run(name, func(t *testing.T) {
			n := net(t, p)
			batch := n.Fit(2, 2)
			want, _ := program.Simplified(t, n, batch, 0)
			got, count := program.Simplified(t, n, batch, 1)
			taken += count
			called(want)
			called(got)
			if !proto.Equal(got.Proto, want.Proto) {
				t.Errorf("another model without %d weights", count)
			}
		})
	}
	if taken < 20 {
		t.Errorf("%d weights were taken out of all nets", taken)
	}
}

// called gives every weight of a model the name of what it holds.
func called(m *onnx.Model) {
	g := m.Proto.Graph
	names := map[string]string{}
	for _, w := range g.Initializer {
		was := w.Name
		w.Name = ""
		b, _ := proto.MarshalOptions{Deterministic: true}.Marshal(w)
		names[was] = fmt.Sprintf("%x", sha256.Sum256(b))
		w.Name = names[was]
	}
	for _, n := range g.Node {
		onnx.Retake(n, names)
	}
	slices.SortFunc(g.Initializer, func(a, b *onnxpb.TensorProto) int { return strings.Compare(a.Name, b.Name) })
	g.Initializer = slices.CompactFunc(g.Initializer, func(a, b *onnxpb.TensorProto) bool { return a.Name == b.Name })
}
