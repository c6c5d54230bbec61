package onnx

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/stagetest"
)

// tiny returns a model that adds a weight of two numbers to its input.
func tiny() *onnxpb.ModelProto {
	return &onnxpb.ModelProto{
		IrVersion:   3,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 13}},
		Graph: &onnxpb.GraphProto{
			Node: []*onnxpb.NodeProto{{OpType: "Add", Input: []string{"x", "w"},
				Output: []string{"y"}}},
			Initializer: []*onnxpb.TensorProto{{Name: "w", Dims: []int64{2},
				DataType: int32(onnxpb.TensorProto_FLOAT), RawData: make([]byte, 8)}},
			Input: []*onnxpb.ValueInfoProto{
				Value{Name: "x", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{Free, 2}, Known: true}.proto(),
				Value{Name: "w", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{2}, Known: true}.proto(),
			},
			Output: []*onnxpb.ValueInfoProto{Value{Name: "y", Elem: onnxpb.TensorProto_FLOAT}.proto()},
		},
	}
}

func encode(t testing.TB, p proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestInputsAndOutputs(t *testing.T) {
	m, err := Parse(encode(t, tiny()))
	if err != nil {
		t.Fatal(err)
	}
	in := []Value{{Name: "x", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{Free, 2}, Known: true}}
	if d := cmp.Diff(in, m.Inputs()); d != "" {
		t.Errorf("inputs: %s", d)
	}
	out := []Value{{Name: "y", Elem: onnxpb.TensorProto_FLOAT}}
	if d := cmp.Diff(out, m.Outputs()); d != "" {
		t.Errorf("outputs: %s", d)
	}
	if m.Opset() != 13 || m.Producer("y").GetOpType() != "Add" || m.Producer("x") != nil {
		t.Error("opset or producers are wrong")
	}
}

func TestParseRefuses(t *testing.T) {
	whole := encode(t, tiny())
	change := func(f func(*onnxpb.ModelProto)) []byte {
		p := tiny()
		f(p)
		return encode(t, p)
	}
	tests := []struct {
		name string
		in   []byte
		want string
	}{
		{"nothing", nil, "empty"},
		{"a text", []byte("hello, this is a text"), "not an ONNX model"},
		{"cut off", whole[:len(whole)-5], "cut off"},
		{"no graph", change(func(p *onnxpb.ModelProto) { p.Graph = nil }), "no graph"},
		{"no output", change(func(p *onnxpb.ModelProto) { p.Graph.Output = nil }), "no output"},
		{"no opset", change(func(p *onnxpb.ModelProto) { p.OpsetImport = nil }),
			"version of ONNX's operators"},
		{"a short weight", change(func(p *onnxpb.ModelProto) {
			p.Graph.Initializer[0].RawData = make([]byte,
				7)
		}), `weight "w" of shape [2] needs 8 bytes and has 7`},
		{"a huge weight", change(func(p *onnxpb.ModelProto) {
			p.Graph.Initializer[0].Dims = []int64{1 << 40,
				1 << 40}
		}), "impossible shape"},
		{"a negative weight",
			change(func(p *onnxpb.ModelProto) { p.Graph.Initializer[0].Dims = []int64{-2} }),
			"impossible shape"},
		{"a weight elsewhere", change(func(p *onnxpb.ModelProto) {
			p.Graph.Initializer[0].DataLocation = onnxpb.TensorProto_EXTERNAL
		}), "stands in another file"},
	}
	for _, tt := range tests {
		_, err := Parse(tt.in)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
}

func TestNewGraphRefuses(t *testing.T) {
	for _, shape := range [][]int{{1 << 35}, {1 << 20, 1 << 20}, {1 << 62, 0, 1 << 62}, {2, -1}} {
		m, err := Parse(encode(t, tiny()))
		if err != nil {
			t.Fatal(err)
		}
		types := map[string]Type{m.Proto.Graph.Node[0].Output[0]: {Shape: shape}}
		for _, v := range m.Inputs() {
			types[v.Name] = Type{Shape: []int{2}}
		}
		want := "node " + Node{m.Proto.Graph.Node[0]}.Label()
		if _, err := NewGraph(m, types); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one with %q", shape, err, want)
		}
	}
}

func TestEdit(t *testing.T) {
	m, err := Parse(encode(t, tiny()))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := m.Fresh("w"), m.Fresh("w"); a != "w_1" || b != "w_2" {
		t.Errorf("fresh names %q and %q", a, b)
	}
	before, after := m.Fragment(), m.Fragment()
	half := before.Floats("half", []float32{0.5})
	before.OpTo("x", "Mul", []string{"image", half})
	after.OpTo("z", "Softmax", []string{"y"}, Attr{"axis", 1})
	after.Op("Relu", []string{"y"})
	m.Before(before)
	m.After(after)
	m.SetInputs(Value{Name: "image", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{4, 2}, Known: true})
	m.SetOutputs(Value{Name: "z", Elem: onnxpb.TensorProto_FLOAT})
	m.Prune()
	var ops []string
	for _, n := range m.Proto.Graph.Node {
		ops = append(ops, n.OpType)
	}
	if d := cmp.Diff([]string{"Mul", "Add", "Softmax"}, ops); d != "" {
		t.Error(d)
	}
	if n := len(m.Proto.Graph.Initializer); n != 2 {
		t.Errorf("%d weights, want 2", n)
	}
	if in := m.Inputs(); len(in) != 1 || in[0].Name != "image" || m.Proto.IrVersion != 4 {
		t.Errorf("inputs %v at IR version %d", in, m.Proto.IrVersion)
	}
	a, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := m.Encode(); !bytes.Equal(a, b) {
		t.Error("a model encodes differently from call to call")
	}
}

// TestPruneKeepsOuterValues holds that what only a graph inside a node reads stays.
func TestPruneKeepsOuterValues(t *testing.T) {
	p := tiny()
	inner := &onnxpb.GraphProto{
		Node:   []*onnxpb.NodeProto{{OpType: "Relu", Input: []string{"y"}, Output: []string{"r"}}},
		Output: []*onnxpb.ValueInfoProto{{Name: "r"}},
	}
	p.Graph.Node = append(p.Graph.Node, &onnxpb.NodeProto{
		OpType: "If", Input: []string{"c"}, Output: []string{"z"},
		Attribute: []*onnxpb.AttributeProto{{Name: "then_branch", G: inner,
			Type: onnxpb.AttributeProto_GRAPH}},
	})
	m := &Model{Proto: p}
	m.SetOutputs(Value{Name: "z"})
	m.Prune()
	if len(p.Graph.Node) != 2 || len(p.Graph.Initializer) != 1 {
		t.Errorf("%d nodes and %d weights are left", len(p.Graph.Node), len(p.Graph.Initializer))
	}
	if name := m.Fresh("r"); name != "r_1" {
		t.Errorf("an inner graph's value was not seen: %q", name)
	}
}

func TestFlushSubnormals(t *testing.T) {
	p := tiny()
	p.Graph.Initializer[0].RawData = []byte{1, 0, 0, 0, 1, 0, 0, 0x80}
	m := &Model{Proto: p}
	if n := m.FlushSubnormals(); n != 2 {
		t.Errorf("%d flushed, want 2", n)
	}
	if want := []byte{0, 0, 0, 0, 0, 0, 0, 0x80}; !bytes.Equal(p.Graph.Initializer[0].RawData, want) {
		t.Errorf("got % x", p.Graph.Initializer[0].RawData)
	}
}

// external writes a model whose weight is at location, and returns its path.
func external(t *testing.T, location, offset, length string) string {
	t.Helper()
	p := tiny()
	p.Graph.Initializer[0] = &onnxpb.TensorProto{
		Name: "w", Dims: []int64{2}, DataType: int32(onnxpb.TensorProto_FLOAT),
		DataLocation: onnxpb.TensorProto_EXTERNAL,
		ExternalData: []*onnxpb.StringStringEntryProto{{Key: "location", Value: location},
			{Key: "offset", Value: offset}, {Key: "length", Value: length}},
	}
	dir := filepath.Join(t.TempDir(), "model")
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"m.onnx": encode(t, p), "sub/w.bin": []byte("0123abcdefgh"),
		"../outside.bin": make([]byte, 100), "lfs.bin": []byte("version " +
			"https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 8\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"link.bin": "../outside.bin", "gone.bin": "../gone.bin"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.bin"), 0o600); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "m.onnx")
}

func TestExternalWeights(t *testing.T) {
	path := external(t, "sub/w.bin", "4", "8")
	files, err := ExternalFiles(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(filepath.Dir(path), "sub", "w.bin"); len(files) != 1 || files[0] != want {
		t.Errorf("files %q, want %q", files, want)
	}
	m, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if raw := m.Proto.Graph.Initializer[0].RawData; string(raw) != "abcdefgh" {
		t.Errorf("the weight holds %q", raw)
	}
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(b); err != nil {
		t.Errorf("with its weights inside: %v", err)
	}
}

func TestExternalWeightsRefused(t *testing.T) {
	tests := []struct{ name, location, offset, length, want string }{
		{"outside the folder", "../outside.bin", "0", "8", "outside the model's folder"},
		{"an absolute path", "/etc/passwd", "0", "8", "outside the model's folder"},
		{"a link to the outside", "link.bin", "0", "8",
			`weight "w": its data at "link.bin" is outside the model's folder, by a link: copy`},
		{"a link to nothing outside", "gone.bin", "0", "8",
			`weight "w": its data in "gone.bin" can't be read`},
		{"a pointer of Git LFS", "lfs.bin", "0", "8",
			`weight "w": its data in "lfs.bin" can't be read: a pointer of Git LFS to a file of 8 bytes`},
		{"a pipe", "pipe.bin", "0", "8",
			`weight "w": its data in "pipe.bin" can't be read: a pipe, not a regular file`},
		{"no file", "none.bin", "0", "8",
			`weight "w": its data should be in "none.bin", and there is no such file in the model's ` +
				`folder: copy`},
		{"no folder", "none/none.bin", "0", "8",
			`weight "w": its data should be in "none/none.bin", and there is no such file`},
		{"too short a file", "sub/w.bin", "8", "8", "has 12 bytes, 8 from 8 are needed"},
		{"a length that doesn't fit", "sub/w.bin", "0", "12", "needs 8 bytes"},
		{"a negative offset", "sub/w.bin", "-1", "8", "makes no sense"},
		{"an offset that is no number", "sub/w.bin", "x", "8", "makes no sense"},
	}
	for _, tt := range tests {
		path := external(t, tt.location, tt.offset, tt.length)
		_, err := ReadFile(path)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
		if errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the error is that of a model that isn't there", tt.name)
		}
		// What is asked first says the same, if it sees it.
		_, seen := ExternalFiles(path)
		if strings.Contains(tt.want, "data") && seen == nil || seen != nil && seen.Error() != err.Error() {
			t.Errorf("%s: ExternalFiles says %v, and ReadFile %v", tt.name, seen, err)
		}
	}
}

// TestOfficialModels holds that nets survive reading and writing to the last byte of meaning.
func TestOfficialModels(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(golden.Dir(t), "models", "*.onnx"))
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		m2, err := Parse(again)
		if err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(m.Proto, m2.Proto) || len(again) > len(b)+len(b)/10 {
			t.Errorf("%s changes when it is written: %d bytes, %d before", file, len(again), len(b))
		}
		if files, err := ExternalFiles(file); err != nil || len(files) > 0 {
			t.Errorf("%s has external files: %q, %v", file, files, err)
		}
	}
}

// TestGenerated holds that the generated file is the schema's.
func TestGenerated(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("go", "run", "-C", "gen", ".", "../onnx.proto", dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		stagetest.Lacks(t, fmt.Sprintf("the generator doesn't build here: %v\n%s", err, out))
	}
	want, err := os.ReadFile(filepath.Join(dir, "onnx.pb.go"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join("onnxpb", "onnx.pb.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("onnxpb/onnx.pb.go isn't what onnx.proto gives: run go generate")
	}
}

// TestManyFreshNames holds that a name is found at once, however many there are of its kind.
func TestManyFreshNames(t *testing.T) {
	m := &Model{Proto: tiny()}
	begun := time.Now()
	for range 100_000 {
		m.Fresh("y")
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestSound holds that a panic becomes an error, which says at which node it was: the one that was looked at
// last.
func TestSound(t *testing.T) {
	at := func(name string, f func()) {
		defer Node{NodeProto: NewNode(name, "Relu", nil, nil)}.Named()
		f()
	}
	err := func() (err error) {
		defer Sound(&err)
		at("outer", func() { at("inner", func() { panic("odd") }) })
		return nil
	}()
	if want := `node Relu "inner": odd`; !errors.Is(err, ErrUnsound) ||
		!strings.HasSuffix(err.Error(), "together: "+want) {
		t.Errorf("error %v, want one of %s", err, want)
	}
	if err = func() (err error) {
		defer Sound(&err)
		at("whole", func() {})
		return nil
	}(); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(encode(f, tiny()))
	f.Add([]byte("text"))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "m.onnx")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = ExternalFiles(path)
		m, err := ReadFile(path)
		if err != nil {
			return
		}
		m.Inputs()
		m.Outputs()
		m.FlushSubnormals()
		m.Prune()
		again, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parse(again); err != nil {
			t.Fatal(err)
		}
	})
}

// TestRename holds that a weight's readers know its other name, those inside nodes too.
func TestRename(t *testing.T) {
	inner := NewNode("in", "Relu", []string{"w"}, []string{"a"})
	branch := NewNode("if", "If", []string{"c"}, []string{"b"})
	branch.Attribute = []*onnxpb.AttributeProto{{Name: "then_branch", Type: onnxpb.AttributeProto_GRAPH,
		G: &onnxpb.GraphProto{Node: []*onnxpb.NodeProto{inner}}}}
	outer := NewNode("out", "Add", []string{"w", "x"}, []string{"d"})
	w := FloatTensor("w", []float32{1}, 1)
	m := &Model{Proto: &onnxpb.ModelProto{Graph: &onnxpb.GraphProto{Node: []*onnxpb.NodeProto{branch, outer},
		Initializer: []*onnxpb.TensorProto{w}}}}
	m.Rename(map[string]string{"w": "v"})
	if w.Name != "v" || inner.Input[0] != "v" || outer.Input[0] != "v" || outer.Input[1] != "x" {
		t.Errorf("%v", m.Proto)
	}
}
