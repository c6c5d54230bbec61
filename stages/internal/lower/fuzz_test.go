package lower_test

import (
	"cmp"
	"errors"
	"maps"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/stagetest"
)

// What the compiler may take for one of the small nets, whatever was done to it.
const (
	mostTime   = 2 * time.Second // of the processor
	mostMemory = 512 << 20       // allocated in all, three times what constants may take
)

// A start is a net with what ONNX Runtime tells of its values.
type start struct {
	whole
	types map[string]onnx.Type
}

// images is how many of them the fuzzed programs take at once.
const images = 2

// starts returns every net twice: as its file has it, and simplified.
func starts(f *testing.F) []start {
	var out []start
	for _, w := range wholes(f) {
		b, err := proto.Marshal(w.model)
		if err != nil {
			f.Fatal(err)
		}
		s := source(w.spec, b)
		out = append(out, start{w, lower.Types(f, s, batchOf(s))})
		g, _, err := lower.Graph(f.Context(), s, batchOf(s))
		if err != nil {
			f.Fatal(err)
		}
		w.model = g.Proto
		out = append(out, start{w, g.Types})
	}
	return out
}

func source(spec modelfile.Spec, file []byte) lower.Source {
	return lower.Source{Spec: spec, File: func() ([]byte, error) { return file, nil }}
}

func batchOf(s lower.Source) int { return cmp.Or(s.Batch, images) }

// A way makes a request for a program of a net; layer is one of its layers.
type way func(n *program.Net, layer string) lower.Request

// ways are all programs that are made of a graph.
func ways() []way {
	var out []way
	ask := func(rules func(n *program.Net) relevance.Policy, q lower.Question, audit bool) {
		for _, inner := range []bool{false, true} {
			out = append(out, func(n *program.Net, layer string) lower.Request {
				q := q
				q.Rules = rules(n)
				if inner {
					q.Layer = layer
				}
				return lower.Request{Kind: lower.Backward, Question: q, Inputs: targetsAndImages(n),
					Images: lower.Images, Audit: audit}
			})
		}
	}
	is := func(p relevance.Policy) func(*program.Net) relevance.Policy {
		return func(*program.Net) relevance.Policy { return p }
	}
	ask(is(relevance.Derivative()), lower.Question{}, false)
	ask(is(relevance.Derivative()), lower.Question{Probability: true, Start: lower.StartLogits}, false)
	ask(is(relevance.Policy{Name: "grouped", Grouped: true, Apart: true}), lower.Question{}, true)
	ask(is(relevance.Guided()), lower.Question{}, false)
	ask(is(relevance.Deconvolution()), lower.Question{}, false)
	for i, rule := range []relevance.LayerRule{
		relevance.Epsilon(1e-6), relevance.AlphaBeta(2, 1,
			1e-6), relevance.ZPlus(1e-6), relevance.CaptumZPlus(1e-6), relevance.Gamma(0.25, 1e-6),
		relevance.Flat(1e-6), relevance.WSquare(1e-6),
	} {
		ask(func(n *program.Net) relevance.Policy {
			return relevance.LRP{
				Conv: rule, Dense: rule, First: relevance.Box(n.InputBounds(1e-6)), Stabiliser: 1e-6,
				Bias:  i%2 == 0,
				Norm:  []relevance.Norm{relevance.NormFolded, relevance.NormApart, relevance.NormPassed}[i%3],
				Gates: []relevance.Gates{relevance.GatesConstant, relevance.GatesHalved}[i%2],
			}.Policy()
		}, lower.Question{Start: lower.StartOnes}, i == 0)
	}
	ask(is(relevance.RAP().Policy()), lower.Question{Start: lower.StartTarget}, true)
	ask(is(relevance.RAPPaper().Policy()), lower.Question{Start: lower.StartTarget}, false)
	ask(is(relevance.TIBAV()), lower.Question{}, false)
	for i, v := range []relevance.AbsLRPVariant{relevance.AbsLRPPaper, relevance.AbsLRPOfficial,
		relevance.AbsLRPJanuary} {
		ask(is(relevance.AbsLRP{
			Variant: v, MaxPool: []relevance.MaxPoolRule{relevance.MaxPoolAuto, relevance.MaxPoolDivide,
				relevance.MaxPoolMultiply}[i],
			Ablation: []relevance.Ablation{relevance.AblationNone, relevance.AblationValues,
				relevance.AblationQueriesKeys}[i],
		}.Policy()), lower.Question{Start: lower.StartLogits}, i == 1)
	}
	out = append(out, func(_ *program.Net, layer string) lower.Request {
		return lower.Request{
			Kind: lower.Forward, Question: lower.Question{Layer: layer},
			Inputs: func(s lower.Shapes) []lower.IO {
				return []lower.IO{lower.In("values", s.LayerShape(s.Batch)...),
					lower.In("image", s.ImageShape(1)...)}
			},
			Images: lower.Read("image"), Substitute: lower.Read("values"),
		}
	})
	for i := range 4 {
		out = append(out, func(n *program.Net, layer string) lower.Request {
			return lower.Request{
				Kind: lower.Comparison, Question: lower.Question{Layer: []string{layer,
					""}[i/2]}, Inputs: targetsAndImages(n), Images: lower.Images,
				Official: i == 1, Once: i%2 == 0,
			}
		})
	}
	for _, glance := range []lower.Glance{lower.Heads, lower.Slopes, lower.Relevances, lower.Factors} {
		out = append(out, func(n *program.Net, _ string) lower.Request {
			return lower.Request{Kind: lower.Attention, Inputs: targetsAndImages(n), Images: lower.Images,
				Glances: []lower.Glance{glance}}
		})
	}
	return out
}

func targetsAndImages(n *program.Net) func(lower.Shapes) []lower.IO {
	return func(s lower.Shapes) []lower.IO {
		return append([]lower.IO{lower.In("targets", s.Batch, n.Classes)}, lower.ImagesInput(s)...)
	}
}

// layerOf returns the name of a layer that experiments may ask for.
func layerOf(g *onnx.Graph, k int) (_ string, err error) {
	defer onnx.Sound(&err)
	middle, final := relevance.Layers(g)
	relevance.Rectifiers(g)
	relevance.HasAttention(g)
	relevance.PatchEmbedding(g)
	nodes := g.Proto.Graph.Node
	if len(nodes) == 0 {
		return "", nil // the answer is the image
	}
	return []string{middle, final, nodes[k%len(nodes)].Output[0]}[k%3], nil
}

// FuzzCompile holds that the compiler says what's wrong with a model whose nodes don't fit together, and
// which node it is, or goes on: no panic, no hang, no memory that the model doesn't need. A net is changed,
// and what ONNX Runtime would tell of its values too: a change is of four bytes. ONNX Runtime itself has no
// part.
func FuzzCompile(f *testing.F) {
	nets, all := starts(f), ways()
	for i := range nets {
		for k := range all {
			f.Add(uint8(i), uint8(k), []byte(nil), []byte(nil))
		}
		for k := range 32 {
			f.Add(uint8(i), uint8(k), []byte{byte(k), byte(3 * i), byte(5 * i), byte(7 * k)},
				[]byte{byte(i), byte(k), 3, byte(9 * k)})
		}
	}
	f.Fuzz(func(t *testing.T, which, way uint8, edits, told []byte) {
		from := nets[int(which)%len(nets)]
		m := proto.Clone(from.model).(*onnxpb.ModelProto)
		mutate(m, edits[:min(len(edits), 40)])
		types := retold(from.types, m.Graph, told[:min(len(told), 40)])
		spec := from.spec
		if len(m.Graph.Output) > 0 {
			spec.Output = m.Graph.Output[0].Name
		}
		b, err := proto.Marshal(m)
		if err != nil {
			return // a name that's no text
		}
		n, err := modeltest.NetOf(modelfile.Model{Spec: spec, ONNX: b})
		if err != nil {
			t.Fatal(err)
		}
		var g *onnx.Graph
		s := source(spec, b)
		s.Graph = func(int) (*onnx.Graph, error) { return g.Clone(), nil }
		bounded(t, func() { g, err = lower.Rewritten(s, batchOf(s), types) })
		if err != nil || m.OpsetImport[0].Version != relevance.Opset {
			return
		}
		bounded(t, func() {
			var layer string
			if layer, err = layerOf(g, int(way)); err == nil {
				_, err = lower.Program(t.Context(), s, batchOf(s), all[int(way)%len(all)](n, layer))
			}
		})
		if errors.Is(err, onnx.ErrUnsound) && !strings.Contains(err.Error(), "node ") {
			t.Errorf("%v: it doesn't say where", err)
		}
	})
}

// bounded fails the test if f takes too much.
func bounded(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	defer close(done)
	go func() {
		for begun := cpuTime(ofProcess); cpuTime(ofProcess)-begun < 10*mostTime; {
			select {
			case <-done:
				return
			case <-time.After(time.Second):
			}
		}
		panic("it goes on and on")
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	memory, spent := allocated(), cpuTime(ofThread)
	f()
	memory, spent = allocated()-memory, cpuTime(ofThread)-spent
	limit := mostTime
	if stagetest.Race() {
		limit *= 5
	}
	if memory > mostMemory || spent > limit {
		t.Errorf("it took %v and %d MB", spent, memory>>20)
	}
}

func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// What [cpuTime] is of: of this process, or of this thread.
const (
	ofProcess = syscall.RUSAGE_SELF
	ofThread  = 1
)

// cpuTime returns for how long a process or thread has run, which on a machine that has much else to do is
// far less than what has passed.
func cpuTime(of int) time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(of, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano())
}

// retold changes types that ONNX Runtime told, and adds those of new values: the type of the first thing that
// the node reads. Every four bytes are a change: of what, of which value, where, and to what.
func retold(types map[string]onnx.Type, g *onnxpb.GraphProto, edits []byte) map[string]onnx.Type {
	out := maps.Clone(types)
	var names []string
	for _, n := range g.Node {
		for _, v := range n.Output {
			if _, ok := out[v]; !ok && len(n.Input) > 0 {
				out[v] = out[n.Input[0]]
			}
			names = append(names, v)
		}
	}
	for ; len(edits) >= 4 && len(names) > 0; edits = edits[4:] {
		name := names[int(edits[1])%len(names)]
		t, at, to := out[name], int(edits[2]), int(max(0, number(edits[3])))
		shape := slices.Clone(t.Shape)
		switch k := len(shape); {
		case edits[0]%8 == 0 && k > 0:
			shape = slices.Delete(shape, at%k, at%k+1)
		case edits[0]%8 == 1:
			shape = append(shape, to)
		case edits[0]%8 == 2:
			t.Elem = onnxpb.TensorProto_DataType(at % 20)
		case edits[0]%8 == 3:
			shape = slices.Clone(out[names[to%len(names)]].Shape)
		case edits[0]%8 == 4 && at%4 == 0:
			delete(out, name)
			continue
		case k > 0:
			shape[at%k] = to
		}
		t.Shape = shape
		out[name] = t
	}
	return out
}
