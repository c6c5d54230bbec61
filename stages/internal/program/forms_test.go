package program_test

import (
	"encoding/csv"
	"errors"
	"flag"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

var updateForms = flag.Bool("update-forms", false, "write testdata/forms.csv anew")

// TestFrozenForms fails when what is emitted for a class of GPUs, or for a precision, changes, while the
// processor's program, which stands in keys, doesn't, and the Forms of its kernels aren't raised.
func TestFrozenForms(t *testing.T) {
	modeltest.Runtime(t)
	// Its rows are class and precision, rules, forms, and the digests of the processor's program and of the
	// class's.
	const file = "testdata/forms.csv"
	n := allForms(t)
	digest := func(class, precision string, rules relevance.Policy) string {
		slot := stagetest.NewSlotOn(stages.Device{Class: class})
		d, err := program.DigestOn(t.Context(), n, slot, precision, lower.Question{Rules: rules})
		if err != nil {
			t.Fatal(err)
		}
		return d.String()
	}
	var rows [][]string
	of := slices.Clone(stages.DeviceClasses[1:])
	for _, p := range ort.Providers {
		for _, in := range p.Precisions {
			if !in.Unmeasured { // those are refused
				of = append(of, p.Class+" "+in.Name)
			}
		}
	}
	for _, made := range of {
		class, precision, _ := strings.Cut(made, " ")
		for name, rules := range map[string]relevance.Policy{
			"derivative": relevance.Derivative(), "tibav": relevance.TIBAV(),
		} {
			row := []string{made, name, strconv.Itoa(ort.ProviderOf(class).KernelsIn(precision).Forms),
				digest("cpu", "", rules), digest(class, precision, rules)}
			if row[3] == row[4] {
				t.Errorf("%s by %s: nothing is emitted otherwise", made, name)
			}
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, slices.Compare)
	if *updateForms {
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := csv.NewWriter(f).WriteAll(rows); err != nil {
			t.Fatal(err)
		}
		return
	}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("no %s: go test ./stages/internal/program -run FrozenForms -update-forms", file)
	} else if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	frozen, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(frozen) != len(rows) {
		t.Fatalf("%d rows in %s, want %d", len(frozen), file, len(rows))
	}
	for i, was := range frozen {
		now := rows[i]
		if slices.Equal(was, now) {
			continue
		}
		if was[2] == now[2] && was[3] == now[3] {
			t.Errorf("what is emitted for %s by %s changed: raise Forms in its provider's row", now[0],
				now[1])
		}
		t.Errorf("%s is out of date: go test ./stages/internal/program -run FrozenForms -update-forms", file)
	}
}

// allForms returns a net with what is emitted otherwise: a MaxPool of overlapping windows, a maximum, an
// InstanceNormalization, a Slice backwards, a magnitude, and products of transposed matrices.
func allForms(t *testing.T) *program.Net {
	ints := func(name string, v ...int64) *onnxpb.TensorProto { return onnx.IntTensor(name, v, len(v)) }
	ints4 := func(name string, v int64) onnx.Attr { return onnx.Attr{Name: name, Value: []int64{v, v, v, v}} }
	weights := []*onnxpb.TensorProto{
		modeltest.Noise("w", 0.7, 3, 3, 3, 3), onnx.FloatTensor("scale", []float32{1, 2, 3}, 3),
		onnx.FloatTensor("shift", []float32{0, 1, -1}, 3), ints("last", -1), ints("first", -100),
		ints("axis", 3), ints("back", -1), ints("rows", 0, 3, 20), ints("image", 0, 3, 4, 5),
	}
	n, _ := small3(t, 17, weights,
		onnx.NewNode("conv", "Conv", []string{"input", "w"}, []string{"f"}, ints4("pads", 1)),
		onnx.NewNode("norm", "InstanceNormalization", []string{"f", "scale", "shift"}, []string{"n"}),
		onnx.NewNode("abs", "Abs", []string{"n"}, []string{"a"}),
		onnx.NewNode("slice", "Slice", []string{"a", "last", "first", "axis", "back"}, []string{"s"}),
		onnx.NewNode("pool", "MaxPool", []string{"s"}, []string{"p"}, ints4("pads", 1),
			onnx.Attr{Name: "kernel_shape", Value: []int64{3, 3}},
			onnx.Attr{Name: "strides", Value: []int64{2, 2}}),
		onnx.NewNode("rows", "Reshape", []string{"p", "rows"}, []string{"q"}),
		onnx.NewNode("turn", "Transpose", []string{"q"}, []string{"k"},
			onnx.Attr{Name: "perm", Value: []int64{0, 2, 1}}),
		onnx.NewNode("scores", "MatMul", []string{"k", "q"}, []string{"z"}),
		onnx.NewNode("softmax", "Softmax", []string{"z"}, []string{"weights"}),
		onnx.NewNode("values", "MatMul", []string{"q", "weights"}, []string{"o"}),
		onnx.NewNode("image", "Reshape", []string{"o", "image"}, []string{"i"}),
		onnx.NewNode("largest", "ReduceMax", []string{"p"}, []string{"l"},
			onnx.Attr{Name: "axes", Value: []int64{3}}),
		onnx.NewNode("both", "Concat", []string{"i", "l"}, []string{"c"}, onnx.Attr{Name: "axis", Value: 3}),
	)
	return n
}
