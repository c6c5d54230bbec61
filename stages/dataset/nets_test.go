package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// quickstart is the folder of the nets trained on these draws.
const quickstart = "../../experiments/quickstart"

// parts lists the nets, with the number of nodes that characterise each architecture.
var parts = map[string]map[string]int{
	"vgg":        {"Conv": 5, "MaxPool": 3, "Gemm": 2, "BatchNormalization": 0},
	"vgg-b":      {"Conv": 5, "MaxPool": 3, "Gemm": 2, "BatchNormalization": 0},
	"vgg-bn":     {"Conv": 5, "MaxPool": 3, "Gemm": 2, "BatchNormalization": 5},
	"resnet":     {"Conv": 11, "BatchNormalization": 11, "Add": 4, "MaxPool": 1, "GlobalAveragePool": 1},
	"resnet-b":   {"Conv": 11, "BatchNormalization": 11, "Add": 4, "MaxPool": 1, "GlobalAveragePool": 1},
	"vgg-c":      {"Conv": 5, "MaxPool": 3, "Gemm": 2, "BatchNormalization": 0},
	"vgg-bn-b":   {"Conv": 5, "MaxPool": 3, "Gemm": 2, "BatchNormalization": 5},
	"vgg-bn-c":   {"Conv": 5, "MaxPool": 3, "Gemm": 2, "BatchNormalization": 5},
	"resnet-c":   {"Conv": 11, "BatchNormalization": 11, "Add": 4, "MaxPool": 1, "GlobalAveragePool": 1},
	"resnet-e01": {"Conv": 11, "BatchNormalization": 11, "Add": 4},
	"resnet-e02": {"Conv": 11, "BatchNormalization": 11, "Add": 4},
	"resnet-e04": {"Conv": 11, "BatchNormalization": 11, "Add": 4},
	"resnet-e07": {"Conv": 11, "BatchNormalization": 11, "Add": 4},
	"vit": {"Conv": 1, "LayerNormalization": 11, "Softmax": 5, "Erf": 5, "MatMul": 30,
		"BatchNormalization": 0},
	"vit-b": {"Conv": 1, "LayerNormalization": 11, "Softmax": 5, "Erf": 5, "MatMul": 30,
		"BatchNormalization": 0},
	"vit-16":   {"Conv": 1, "LayerNormalization": 9, "Softmax": 4, "Erf": 4, "MatMul": 24},
	"convnext": {"Conv": 6, "LayerNormalization": 7, "Softmax": 0, "Erf": 4, "MatMul": 8},
	"mixer":    {"Conv": 1, "LayerNormalization": 11, "Softmax": 0, "Erf": 10, "MatMul": 20},
	"swin":     {"Conv": 1, "LayerNormalization": 11, "Softmax": 4, "Erf": 4, "MatMul": 25},
}

// TestNetsSize keeps the nets small enough for the repository, and their list in README.md up to date.
func TestNetsSize(t *testing.T) {
	files, err := filepath.Glob(quickstart + "/*.onnx")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(parts) {
		t.Errorf("%d nets in %s, want %d", len(files), quickstart, len(parts))
	}
	readme, err := os.ReadFile(quickstart + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		sum += info.Size()
		if info.Size() > 500_000 {
			t.Errorf("%s has %d bytes, more than 500,000", f, info.Size())
		}
		if parts[strings.TrimSuffix(filepath.Base(f), ".onnx")] == nil {
			t.Errorf("%s is a net that this test doesn't know", f)
		}
		if row := fmt.Sprintf("| %s | ", filepath.Base(f)); !strings.Contains(string(readme), row) {
			t.Errorf("README.md has no row %q", row)
		}
	}
	if sum > 7_000_000 {
		t.Errorf("the nets have %d bytes in all, more than 7,000,000", sum)
	}
}

// TestNetsParts checks that the exporter hasn't folded away the operators that attribution methods treat
// specially.
func TestNetsParts(t *testing.T) {
	for name, want := range parts {
		t.Run(name, func(t *testing.T) {
			m, err := onnx.ReadFile(filepath.Join(quickstart, name+".onnx"))
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]int{}
			strided, overlapping := 0, 0
			for _, n := range m.Proto.GetGraph().GetNode() {
				got[n.GetOpType()]++
				kernel, stride := ints(n, "kernel_shape"), ints(n, "strides")
				if n.GetOpType() == "Conv" && stride == "[2 2]" {
					strided++
				}
				if n.GetOpType() == "MaxPool" && kernel == "[3 3]" && stride == "[2 2]" {
					overlapping++
				}
			}
			for op, n := range want {
				if got[op] != n {
					t.Errorf("%d nodes %s, want %d", got[op], op, n)
				}
			}
			if strings.HasPrefix(name, "resnet") && (strided != 3 || overlapping != 1) {
				t.Errorf("%d convolutions with stride 2 and %d overlapping max-pools, want 3 and 1", strided,
					overlapping)
			}
		})
	}
}

func ints(n *onnxpb.NodeProto, name string) string {
	for _, a := range n.GetAttribute() {
		if a.GetName() == name {
			return fmt.Sprint(a.GetInts())
		}
	}
	return ""
}
