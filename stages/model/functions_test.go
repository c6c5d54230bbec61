package model_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/rewrite"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

// own is the domain of functions in tests.
const own = "pkg.own"

// intoFunction moves nodes from…to of a model into a function that one node calls. Weights that only they
// take may become constants there, and a number of theirs an attribute of the call, stated or by its
// default.
func intoFunction(r *rand.Rand, m *onnx.Model, from, to int) {
	g := m.Proto.Graph
	number := len(m.Proto.Functions)
	f := &onnxpb.FunctionProto{Domain: own, Name: fmt.Sprint("F", number),
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: int64(m.Opset())}, {Domain: own, Version: 1}}}
	call := onnx.NewNode(fmt.Sprint("call", number), f.Name, nil, nil)
	call.Domain = own
	inside, outside := map[string]bool{}, map[string]bool{}
	for i, n := range g.Node {
		for _, v := range n.Input {
			outside[v] = outside[v] || i < from || i >= to
		}
		for _, v := range n.Output {
			inside[v] = inside[v] || i >= from && i < to
		}
	}
	for _, v := range g.Output {
		outside[v.Name] = true
	}
	for _, n := range g.Node[from:to] {
		for _, v := range n.Input {
			if inside[v] || v == "" || slices.Contains(f.Input, v) {
				continue
			}
			w := slices.IndexFunc(g.Initializer, func(t *onnxpb.TensorProto) bool { return t.Name == v })
			if w >= 0 && !outside[v] && r.IntN(2) == 0 {
				f.Node = append(f.Node, &onnxpb.NodeProto{OpType: "Constant", Output: []string{v},
					Attribute: []*onnxpb.AttributeProto{{Name: "value",
						Type: onnxpb.AttributeProto_TENSOR, T: g.Initializer[w]}}})
				g.Initializer = slices.Delete(g.Initializer, w, w+1)
				inside[v] = true
				continue
			}
			f.Input, call.Input = append(f.Input, v), append(call.Input, v)
		}
		for _, v := range n.Output {
			if outside[v] {
				f.Output, call.Output = append(f.Output, v), append(call.Output, v)
			}
		}
		for i, a := range n.Attribute {
			if a.RefAttrName != "" || a.G != nil || r.IntN(2) == 0 {
				continue
			}
			name := fmt.Sprint("given", len(f.Attribute)+len(f.AttributeProto))
			given := proto.Clone(a).(*onnxpb.AttributeProto)
			given.Name = name
			n.Attribute[i] = &onnxpb.AttributeProto{Name: a.Name, Type: a.Type, RefAttrName: name}
			if r.IntN(2) == 0 {
				f.AttributeProto = append(f.AttributeProto, given)
			} else {
				f.Attribute, call.Attribute = append(f.Attribute, name), append(call.Attribute, given)
			}
		}
	}
	f.Node = append(f.Node, g.Node[from:to]...)
	g.Node = slices.Concat(g.Node[:from:from], []*onnxpb.NodeProto{call}, g.Node[to:])
	m.Proto.Functions = append(m.Proto.Functions, f)
}

// withFunctions returns a model whose nodes are moved into functions, and these into others.
func withFunctions(r *rand.Rand, m *onnx.Model) *onnx.Model {
	m = &onnx.Model{Proto: proto.Clone(m.Proto).(*onnxpb.ModelProto)}
	m.Proto.OpsetImport = append(m.Proto.OpsetImport, &onnxpb.OperatorSetIdProto{Domain: own, Version: 1})
	for range 1 + r.IntN(4) {
		from := r.IntN(len(m.Proto.Graph.Node))
		intoFunction(r, m, from, from+1+r.IntN(len(m.Proto.Graph.Node)-from))
	}
	return m
}

// TestFunctionsAreTheGraphsOwn moves nodes of a net that ends with a Softmax into functions of functions, at
// random: what is read is the net that it was, the head among it, and to the bit the answers that ONNX
// Runtime gives for the file with the functions.
func TestFunctionsAreTheGraphsOwn(t *testing.T) {
	runtime := modeltest.Runtime(t)
	net := tiny{channels: 3, filters: 4, classes: 5, height: 6, width: 9, gain: 6}
	plain := net.model(onnx.Free)
	end := plain.Fragment()
	end.OpTo("p", "Softmax", []string{"logits"}, onnx.Attr{Name: "axis", Value: 1})
	plain.After(end)
	plain.SetOutputs(onnx.Value{Name: "p", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{onnx.Free, 5},
		Known: true})
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := withFunctions(r, plain)
		file, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		data := modeltest.Model(t, model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit"})
		s := modeltest.Spec(t, data)
		if s.Classes != 5 || s.Probabilities || s.Output == "p" {
			t.Errorf("seed %d: the head in a function wasn't found: %+v", seed, s)
		}
		b, err := data.Load(0)
		if err != nil {
			t.Fatal(err)
		}
		read, err := modelfile.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		want := answersOf(t, runtime, file)
		if got := answersOf(t, runtime, read.ONNX); !slices.Equal(got, want) {
			t.Errorf("seed %d: answers %v, ONNX Runtime's of the file are %v", seed, got, want)
		}
		if p, err := onnx.Parse(read.ONNX); err != nil || len(p.Proto.Functions) > 0 {
			t.Errorf("seed %d: functions are left, %v", seed, err)
		}
		x, err := model.Inspect(t.Context(), model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit",
			Layout: "auto", Order: "auto", Kind: "auto"})
		if err != nil || x.Problem != "" || x.Gradient != "" {
			t.Errorf("seed %d: no gradient: %v, %q, %q", seed, err, x.Problem, x.Gradient)
		}
	}
}

// answersOf returns what ONNX Runtime makes of a model with the input pixels and the output p.
func answersOf(t *testing.T, runtime *ort.Runtime, file []byte) []float32 {
	t.Helper()
	s, err := runtime.NewPlainSession(file, []string{"pixels"}, []string{"p"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in, err := ort.NewTensor[float32](runtime, 2, 3, 6, 9)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for i := range in.Data {
		in.Data[i] = float32(math.Sin(float64(i)))
	}
	out, err := ort.Fetch[float32](context.Background(), s, []ort.Value{in})
	if err != nil {
		t.Fatal(err)
	}
	return out[0].Data
}

// TestFunctionsRefused holds that functions which can't be inlined are errors that name the reason, and that
// a few bytes don't become endless nodes.
func TestFunctionsRefused(t *testing.T) {
	calls := func(name string, others ...string) *onnxpb.FunctionProto {
		f := &onnxpb.FunctionProto{Domain: own, Name: name, Input: []string{"a"}, Output: []string{"b"}}
		last := "a"
		for i, other := range others {
			out := fmt.Sprint("v", i)
			if i == len(others)-1 {
				out = "b"
			}
			n := onnx.NewNode("", other, []string{last}, []string{out})
			if n.Domain = own; other == "Relu" {
				n.Domain = ""
			}
			f.Node, last = append(f.Node, n), out
		}
		return f
	}
	var endless []*onnxpb.FunctionProto
	for i := range 40 {
		endless = append(endless, calls(fmt.Sprint("F", i), fmt.Sprint("F", i+1), fmt.Sprint("F", i+1)))
	}
	for _, tt := range []struct {
		functions []*onnxpb.FunctionProto
		want      string
	}{
		{[]*onnxpb.FunctionProto{calls("F0", "F0")}, `function "F0" calls itself`},
		{[]*onnxpb.FunctionProto{calls("F0", "F1"), calls("F1", "F0")}, `function "F0" calls itself`},
		{append(endless, calls("F40", "Relu")), "stand for more than"},
	} {
		m := tiny{channels: 3, filters: 4, classes: 5, height: 6, width: 9, gain: 6}.model(onnx.Free)
		call := onnx.NewNode("call", "F0", []string{"logits"}, []string{"p"})
		call.Domain = own
		m.Proto.Graph.Node = append(m.Proto.Graph.Node, call)
		m.Proto.Functions = tt.functions
		if err := rewrite.InlineFunctions(m); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want one with %q", err, tt.want)
		}
	}
}

// TestNothingElseIsOpened holds, by strace, that a net whose constants stand in a file next to it opens
// nothing else of that name: neither in the working folder, where ONNX Runtime looks for what functions
// name, nor later, when the file may be another.
func TestNothingElseIsOpened(t *testing.T) {
	modeltest.Runtime(t)
	if os.Getenv("RUNEXP_TEST_READS") != "" {
		readsExternal(t)
		return
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("skipped: strace isn't installed, which tells what files are opened")
	}
	log := filepath.Join(t.TempDir(), "log")
	c := exec.Command(strace, "-f", "-e", "trace=open,openat,openat2,open_by_handle_at", "-o", log,
		os.Args[0],
		"-test.run", "^TestNothingElseIsOpened$", "-test.v")
	c.Env = append(os.Environ(), "RUNEXP_TEST_READS=1")
	if out, err := c.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "ptrace") {
			t.Skipf("strace may not trace here: %s", out)
		}
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	within := 0
	for line := range bytes.Lines(b) {
		if !bytes.Contains(line, []byte("weights-of-a-function")) || bytes.Contains(line,
			[]byte("O_WRONLY")) {
			continue // of no interest, or the test's own writing
		}
		if within++; !bytes.Contains(line, []byte(`"weights-of-a-function.bin"`)) ||
			bytes.Contains(line, []byte("AT_FDCWD")) {
			t.Errorf("opened: %s", line)
		}
	}
	if within == 0 {
		t.Error("the file next to the model wasn't read, or strace saw nothing")
	}
}

// readsExternal reads and runs a net whose function has its constants in a file, with a file of that name in
// the working folder too.
func readsExternal(t *testing.T) {
	const name = "weights-of-a-function.bin"
	m := tiny{channels: 3, filters: 4, classes: 5, height: 6, width: 9, gain: 6}.model(onnx.Free)
	m = &onnx.Model{Proto: proto.Clone(m.Proto).(*onnxpb.ModelProto)}
	m.Proto.OpsetImport = append(m.Proto.OpsetImport, &onnxpb.OperatorSetIdProto{Domain: own, Version: 1})
	constant := func(v string) bool {
		return slices.ContainsFunc(m.Proto.Functions[0].Node,
			func(n *onnxpb.NodeProto) bool { return n.OpType == "Constant" && n.Output[0] == v })
	}
	for seed := uint64(0); len(m.Proto.Functions) == 0 || !constant("w"); seed++ {
		m.Proto = proto.Clone(tiny{channels: 3, filters: 4, classes: 5, height: 6, width: 9,
			gain: 6}.model(onnx.Free).Proto).(*onnxpb.ModelProto)
		m.Proto.OpsetImport = append(m.Proto.OpsetImport,
			&onnxpb.OperatorSetIdProto{Domain: own, Version: 1})
		intoFunction(rand.New(rand.NewPCG(seed, 2)), m, 0, 5)
	}
	var weights []byte
	for _, n := range m.Proto.Functions[0].Node {
		if n.OpType == "Constant" && n.Output[0] == "w" {
			w := n.Attribute[0].T
			floats, err := onnx.Float32s(w)
			if err != nil {
				t.Fatal(err)
			}
			weights = onnx.FloatTensor("", floats).RawData
			*w = onnxpb.TensorProto{Name: "w", Dims: w.Dims, DataType: w.DataType,
				DataLocation: onnxpb.TensorProto_EXTERNAL,
				ExternalData: []*onnxpb.StringStringEntryProto{{Key: "location", Value: name}}}
		}
	}
	path := modeltest.File(t, m)
	t.Chdir(t.TempDir())
	for file, b := range map[string][]byte{name: make([]byte, len(weights)),
		filepath.Join(filepath.Dir(path), name): weights} {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	net := tiny{channels: 3, filters: 4, classes: 5, height: 6, width: 9, gain: 6}
	p := model.ONNXParams{Path: path, Preset: "unit", Layout: "auto", Order: "auto", Kind: "auto"}
	sources, err := model.ONNX.Sources(&p, nil)
	if err != nil || len(sources) != 2 || sources[1].File != filepath.Join(filepath.Dir(path), name) {
		t.Errorf("the key is made of %v, %v", sources, err)
	}
	data := modeltest.Model(t, p)
	plain := modeltest.Model(t, model.ONNXParams{Path: modeltest.File(t, net.model(onnx.Free)),
		Preset: "unit"})
	if a, b := predictions(t, data), predictions(t, plain); a != b {
		t.Errorf("answers %s, want those of the file next to the model, %s", a, b)
	}
}

// predictions returns what model/predict makes of an uneven image.
func predictions(t *testing.T, data stages.Data) string {
	t.Helper()
	s := modeltest.Spec(t, data)
	image := make([]byte, 3*s.Height*s.Width)
	for i := range image {
		image[i] = byte(i*i*7 + i)
	}
	payload := stages.NewTensor(image, 3, s.Height, s.Width).Encode()
	r := stagetest.Run(t, model.Predict, nil,
		map[string][]stages.Data{"model": {data}, "images": {stagetest.Items(nil, payload)}})
	return fmt.Sprintf("%x %x", r.Payloads["targets"][0], r.Payloads["probability"][0])
}
