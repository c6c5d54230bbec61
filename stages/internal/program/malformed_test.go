package program_test

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestMalformed holds that a model whose nodes don't fit together makes the compiler
// say so, or go on, and never panic: nets whose nodes, attributes and weights' shapes
// were changed, which ONNX Runtime doesn't always see before it runs them. Every four
// bytes are a change: of what, which, which of its parts, and to what.
func TestMalformed(t *testing.T) {
	type base struct {
		spec  modelfile.Spec
		model *onnxpb.ModelProto
	}
	var bases []base
	for _, pattern := range []string{"testdata/nets/*.onnx", "../../../experiments/quickstart/resnet.onnx", "../../../experiments/quickstart/vit.onnx"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			m := new(onnxpb.ModelProto)
			if err := proto.Unmarshal(b, m); err != nil {
				t.Fatal(err)
			}
			bases = append(bases, base{net(t, model.ONNXParams{Path: file, Preset: "unit"}).Spec, m})
		}
	}
	if len(bases) < 7 {
		t.Fatalf("there are %d nets to start from", len(bases))
	}
	policies := []relevance.Policy{
		relevance.Derivative(), relevance.Guided(), {Name: "grouped", Grouped: true, Apart: true}, relevance.RAP().Policy(), relevance.TIBAV(),
		relevance.AbsLRP{Variant: relevance.AbsLRPOfficial, MaxPool: relevance.MaxPoolAuto, Ablation: relevance.AblationNone}.Policy(),
	}
	// Two of them once made it panic.
	changes := [][]byte{nil, {3, 9, 1, 127}, {116, 251, 245, 148}}
	for k := range byte(8) {
		changes = append(changes, []byte{k, 3 * k, 1, 2, k, 5 * k, 0, 250})
	}
	for i, chosen := range bases {
		for j, edits := range changes {
			m := proto.Clone(chosen.model).(*onnxpb.ModelProto)
			for ; len(edits) >= 4; edits = edits[4:] {
				edit(m.Graph, edits[0], int(edits[1]), int(edits[2]), int(int8(edits[3])))
			}
			b, err := proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			n, err := program.NewNet(modelfile.Model{Spec: chosen.spec, ONNX: b})
			if err != nil {
				t.Fatal(err)
			}
			slot := &closing{Slot: stagetest.NewSlot()}
			for k, p := range policies {
				if k > 2 && (i+j)%len(policies) != k {
					continue // the dear ones in turn
				}
				_, err := n.Gradient(t.Context(), slot, program.Question{Rules: p}, n.Fit(2, 2))
				if k == 0 && j == 0 && err != nil {
					t.Errorf("net %d as it is: %v", i, err)
				}
			}
			slot.close()
		}
	}
}

// closing is a slot whose programs can be given back.
type closing struct {
	stages.Slot
	kept []io.Closer
}

func (s *closing) Keep(key string, weight int64, make func() (io.Closer, error)) (io.Closer, error) {
	c, err := s.Slot.Keep(key, weight, make)
	if err == nil && !slices.Contains(s.kept, c) {
		s.kept = append(s.kept, c)
	}
	return c, err
}

func (s *closing) close() {
	for _, c := range s.kept {
		c.Close()
	}
}

// edit changes a graph a little.
func edit(g *onnxpb.GraphProto, what byte, which, part, to int) {
	n := g.Node[which%len(g.Node)]
	switch what % 8 {
	case 0: // another operator
		n.OpType = g.Node[(which+part+1)%len(g.Node)].OpType
	case 1: // an operator of any kind
		all := relevance.All()
		n.OpType = all[part%len(all)].Type
	case 2: // another input
		other := g.Node[(which+to+256)%len(g.Node)]
		if len(n.Input) > 0 && len(other.Output) > 0 {
			n.Input[part%len(n.Input)] = other.Output[0]
		}
	case 3: // an input less
		if len(n.Input) > 0 {
			k := part % len(n.Input)
			n.Input = append(n.Input[:k], n.Input[k+1:]...)
		}
	case 4: // another number in an attribute
		if len(n.Attribute) > 0 {
			a := n.Attribute[part%len(n.Attribute)]
			a.I = proto.Int64(int64(to))
			if len(a.Ints) > 0 {
				a.Ints[part/len(n.Attribute)%len(a.Ints)] = int64(to)
			}
		}
	case 5: // an attribute less
		if len(n.Attribute) > 0 {
			k := part % len(n.Attribute)
			n.Attribute = append(n.Attribute[:k], n.Attribute[k+1:]...)
		}
	case 6: // a weight of another shape
		if len(g.Initializer) > 0 {
			w := g.Initializer[which%len(g.Initializer)]
			if len(w.Dims) > 0 {
				w.Dims[part%len(w.Dims)] = int64(to)
			}
		}
	case 7: // an output more
		n.Output = append(n.Output, "more"+n.GetName())
	}
}
