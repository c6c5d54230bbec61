package attribute

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
)

// An edge carries x·w from an input to an output of a layer.
type edge struct {
	from, to int
	w        float64
}

// A denseNet is smallcnn written out edge by edge, in float64.
type denseNet struct{ weights map[string][]float64 }

// conv returns the edges of a 3×3 convolution with a border of zeros, the images square.
func (d denseNet) conv(name string, in, out, side int) []edge {
	var edges []edge
	w := d.weights[name+".weight"]
	for m := range out {
		for c := range in {
			for k := range 9 {
				for y := range side {
					for x := range side {
						iy, ix := y+k/3-1, x+k%3-1
						if iy >= 0 && iy < side && ix >= 0 && ix < side {
							edges = append(edges, edge{(c*side+iy)*side + ix, (m*side+y)*side + x,
								w[(m*in+c)*9+k]})
						}
					}
				}
			}
		}
	}
	return edges
}

// linear returns the edges of a linear layer.
func (d denseNet) linear(name string, in, out int) []edge {
	var edges []edge
	for j := range out {
		for i := range in {
			edges = append(edges, edge{i, j, d.weights[name+".weight"][j*in+i]})
		}
	}
	return edges
}

// explain returns equation 12 for a start, image by image: forward, then back.
func (d denseNet) explain(x, start []float64) []float64 {
	type layer struct {
		edges []edge
		x, h  []float64
		pool  []int // for a max-pool, the winner of every output
	}
	var layers []layer
	affine := func(name string, edges []edge, places int) {
		bias := d.weights[name+".bias"]
		h := make([]float64, len(bias)*places)
		for j := range h {
			h[j] = bias[j/places]
		}
		for _, e := range edges {
			h[e.to] += e.w * x[e.from]
		}
		layers = append(layers, layer{edges: edges, x: x, h: h})
		x = h
	}
	relu := func() {
		y := make([]float64, len(x))
		for i, v := range x {
			y[i] = math.Max(v, 0)
		}
		x = y // passes relevance where it is positive, which is where equation 12 does
	}
	pool := func(channels, side int) {
		l := layer{x: x}
		for c := range channels {
			for y := 0; y < side; y += 2 {
				for k := 0; k < side; k += 2 {
					best := (c*side+y)*side + k
					for _, i := range []int{best + 1, best + side, best + side + 1} {
						if x[i] > x[best] {
							best = i
						}
					}
					l.pool, l.h = append(l.pool, best), append(l.h, x[best])
				}
			}
		}
		layers = append(layers, l)
		x = l.h
	}
	affine("conv1", d.conv("conv1", 3, 8, 32), 1024)
	relu()
	pool(8, 32)
	affine("conv2", d.conv("conv2", 8, 12, 16), 256)
	relu()
	pool(12, 16)
	affine("conv3", d.conv("conv3", 12, 16, 8), 64)
	relu()
	affine("fc1", d.linear("fc1", 1024, 32), 1)
	relu()
	affine("fc2", d.linear("fc2", 32, 10), 1)
	r := start
	for k := len(layers) - 1; k >= 0; k-- {
		l := layers[k]
		back := make([]float64, len(l.x))
		for j, i := range l.pool {
			back[i] += math.Max(l.x[i], 0) / (math.Abs(l.h[j]) + 1e-9) * r[j]
		}
		for _, e := range l.edges {
			back[e.from] += math.Max(l.x[e.from]*e.w, 0) / (math.Abs(l.h[e.to]) + 1e-9) * r[e.to]
		}
		r = back
	}
	return r
}

// TestPaperAbsLRP holds a whole map of the paper's method against equation 12 written out over every edge of
// a net.
func TestPaperAbsLRP(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(golden.Dir(t), "models", "smallcnn.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	d := denseNet{map[string][]float64{}}
	for _, w := range m.Proto.Graph.Initializer {
		if v, err := onnx.Float32s(w); err == nil {
			for _, x := range v {
				d.weights[w.Name] = append(d.weights[w.Name], float64(x))
			}
		}
	}
	a := read(t, "abslrp", "smallcnn.npz")
	model := modeltest.Official(t, "smallcnn", 0)
	for _, tt := range []struct {
		contrast string
		others   float64
	}{{"variant", -0.1}, {"none", 0}} {
		for i, got := range absLRPMaps(t, model, absLRP("paper", tt.contrast), a["x"], a["target"]) {
			x, start := make([]float64, len(got)), make([]float64, 10)
			for k, v := range a["x"].Float32s()[i*len(got) : (i+1)*len(got)] {
				x[k] = float64(v)
			}
			for c := range start {
				start[c] = tt.others
			}
			start[a["target"].Int64s()[i]] = 1
			r, sum := d.explain(x, start), 0.0
			for _, v := range r {
				sum += math.Abs(v)
			}
			want := make([]float32, len(r))
			for k, v := range r {
				want[k] = float32(v / sum)
			}
			// Outputs near 0, which relevance is divided by, have lost digits.
			apart(t, fmt.Sprintf("image %d, contrast %s", i, tt.contrast), got, want, 5e-5)
		}
	}
}

// TestAbsLRPReferences holds whole maps of the paper's method, and of the code of January 2024, which
// official numbers don't have, against the numbers that testdata/abslrp.py computes in double precision.
func TestAbsLRPReferences(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "abslrp.json"))
	if err != nil {
		t.Fatal(err)
	}
	var references []struct {
		Net, Variant        string
		Image, Target, Step int
		Norm                float64
		Values              []float64
	}
	if err := json.Unmarshal(b, &references); err != nil {
		t.Fatal(err)
	}
	files := map[string][]string{
		"smallcnn": {"smallcnn"}, "timm_resnet_basic2": {"timm_resnet_basic2_bn"},
		"timm_vit": {"timm_vit_op13", "timm_vit_op17"},
	}
	for _, r := range references {
		x := read(t, "models", r.Net+"_io.npz")["x"].Float32s()[r.Image*3*32*32 : (r.Image+1)*3*32*32]
		for _, net := range files[r.Net] {
			got := oneMap(t, AbsLRP, absLRP(r.Variant, "none"), modeltest.Official(t, net, 0), x,
				[]int{3, 32, 32}, int64(r.Target))
			norm := 0.0
			for _, v := range got {
				norm += float64(v) * float64(v)
			}
			what := fmt.Sprintf("%s, %s, image %d", net, r.Variant, r.Image)
			if norm = math.Sqrt(norm); !(math.Abs(norm/r.Norm-1) <= pass32) {
				t.Errorf("%s: norm %g, want %g", what, norm, r.Norm)
			}
			var some []float32
			for i := 0; i < len(got); i += r.Step {
				some = append(some, got[i])
			}
			apart(t, what, some, singles(r.Values), pass32)
		}
	}
}
