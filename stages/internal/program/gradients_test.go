package program_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// A reference is what gradients.py writes for a net.
type reference struct {
	Net    string
	Images []struct {
		Norm, Sum float64
		Step      int
		Values    []float64
		Single    float64 // the relative error of PyTorch's single precision
	}
}

// dotted writes image number k of gradients.py.
func dotted(k int, dst []float32) {
	for i := range dst {
		a := float64((i*7919+k*104729)%2003)/1001.5 - 1
		b := float64((i/7*31+k*17)%509)/254.5 - 1
		dst[i] = float32(a*0.5 + b)
	}
}

// TestReferences holds the derivatives of every net against PyTorch's in double precision: to 1e-4, or twice
// what PyTorch's own single precision is off by. The nets in testdata are of half precision, of old and new
// opsets, with channels last, with a fixed batch, with a softmax at the end, of one channel, with attention,
// with memories, with sequences, of ONNX Runtime's optimiser, and with means.
func TestReferences(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "gradients.json"))
	if err != nil {
		t.Fatal(err)
	}
	var references []reference
	if err := json.Unmarshal(b, &references); err != nil {
		t.Fatal(err)
	}
	all := modeltest.Nets(t, true)
	for _, name := range []string{"attention", "fused", "grey", "grid", "half", "last", "lstm", "means",
		"opset18", "opset21", "opset7", "sequence", "single", "softmax", "tokens"} {
		all[name] = model.ONNXParams{Path: filepath.Join("testdata", "nets", name+".onnx"), Preset: "unit"}
	}
	for _, name := range []string{"vgg-bn", "vgg-b", "resnet-b"} {
		all[name] = model.ONNXParams{Path: filepath.Join(filepath.Dir(all["vgg"].Path), name+".onnx"),
			Preset: all["vgg"].Preset}
	}
	all["gapcnn_dyn"] = model.ONNXParams{Path: filepath.Join(filepath.Dir(all["gapcnn"].Path),
		"gapcnn_dyn.onnx"), Preset: "unit", Size: picture.Size{H: 32, W: 32}}
	for _, r := range references {
		t.Run(r.Net, func(t *testing.T) {
			p, ok := all[r.Net]
			if !ok {
				t.Fatal("there is no such net")
			}
			delete(all, r.Net)
			n := net(t, p)
			g, err := n.Gradient(t.Context(), threaded{2, stagetest.NewSlot()},
				lower.Question{Rules: relevance.Derivative()}, len(r.Images))
			if err != nil {
				t.Fatal(err)
			}
			for from := 0; from < len(r.Images); from += g.Batch {
				for i := range g.Batch {
					dotted(from+i, g.Image(i))
					g.Explain(i, program.Target{Class: (from + i) % n.Classes, Minus: -1})
				}
				if err := g.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				for i := range g.Batch {
					want := r.Images[from+i]
					limit := math.Max(1e-4, 2*want.Single)
					got := g.Gradient(i)
					var norm, sum, off, sampled float64
					for _, v := range got {
						norm += float64(v) * float64(v)
						sum += float64(v)
					}
					for k, v := range want.Values {
						d := float64(got[k*want.Step]) - v
						off += d * d
						sampled += v * v
					}
					norm = math.Sqrt(norm)
					if e := math.Sqrt(off / sampled); !(e <= limit) {
						t.Errorf("image %d: relative error %.2g, limit %.2g", from+i, e, limit)
					} else {
						t.Logf("image %d: relative error %.2g (PyTorch in single precision: %.2g)", from+i, e,
							want.Single)
					}
					if e := math.Abs(norm/want.Norm - 1); !(e <= limit) {
						t.Errorf("image %d: norm %g, want %g", from+i, norm, want.Norm)
					}
					// A sum of n numbers may be off by √n of their common error.
					if e := math.Abs(sum - want.Sum); !(e <= limit*want.Norm*math.Sqrt(float64(len(got)))) {
						t.Errorf("image %d: sum %g, want %g", from+i, sum, want.Sum)
					}
				}
			}
		})
	}
	for name := range all {
		t.Errorf("no reference for %s", name)
	}
}
