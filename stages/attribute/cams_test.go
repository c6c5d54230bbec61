package attribute

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// keptMaps are the maps of a file of testdata by their names.
func keptMaps(t *testing.T, file string) (kept map[string][]float64) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", file))
	if err == nil {
		err = json.Unmarshal(b, &kept)
	}
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// TestCAMs compares class activation maps with those of cams.py, at a convolutional and at an attentive
// layer.
func TestCAMs(t *testing.T) {
	nets := map[string]map[string][]stages.Data{}
	for key, want := range keptMaps(t, "cams.json") {
		words := strings.SplitN(key, " ", 3) // net, layer, method
		if strings.HasPrefix(words[2], "refine-cam") || strings.HasPrefix(words[2], "condition") {
			continue
		}
		if nets[words[0]] == nil {
			nets[words[0]] = attnLRPInput(t, "quickstart/"+words[0])
		}
		at := GradientCAM{CAM: CAM{tappedAt(words[1]), false, "bilinear", joined()}}
		at.Size = "layer"
		var stage stages.Stage
		var params any
		switch words[2] {
		case "xgrad-cam":
			stage, params = XGradCAM, &XGradCAMParams{at, "official-gildenblat"}
		case "grad-cam-elementwise":
			stage, params = GradCAMElementwise, &GradCAMElementwiseParams{at}
		case "eigen-cam":
			stage, params = EigenCAM, &EigenCAMParams{at.CAM, "paper"}
		case "eigen-cam official":
			stage, params = EigenCAM, &EigenCAMParams{at.CAM, "official-gildenblat"}
		default:
			mask := strings.TrimPrefix(words[2], "recipro-cam ")
			stage, params = ReciproCAM, &ReciproCAMParams{at.Tapped, mask, joined()}
		}
		tolerance := 2e-5
		if words[2] == "xgrad-cam" {
			tolerance = max(tolerance, rounding*conditionOf(t, words[0], words[1], words[2]))
		}
		near(t, key, singles(mapsOf(t, stage, params, nets[words[0]])[0]), singles(want), tolerance)
	}
}

// rounding is the relative error of a layer's values in single precision: two units in the last place.
const rounding = 0x1p-22

// conditionOf returns by how much the map of a method at a layer multiplies relative errors of the layer's
// values: weights whose denominators nearly cancel multiply them by hundreds, as in the transformer, where
// PyTorch in single precision is off by 1.2e-4 (XGrad-CAM, 405) and 1.5e-4 (Grad-CAM++, 500).
func conditionOf(t *testing.T, net, layer, method string) float64 {
	t.Helper()
	kept := keptMaps(t, "cams.json")[net+" "+layer+" condition "+method]
	if len(kept) != 1 {
		t.Fatalf("%s, %s: no condition of %s", net, layer, method)
	}
	return kept[0]
}

// TestRefineCAM compares products of two layers' maps with those of cams.py.
func TestRefineCAM(t *testing.T) {
	others := map[string]string{"resnet": "/blocks/blocks.0/relu2/Relu_output_0",
		"vit": "/blocks/blocks.2/Add_1_output_0"}
	for key, want := range keptMaps(t, "cams.json") {
		words := strings.SplitN(key, " ", 3) // net, layer, method
		base, ok := strings.CutPrefix(words[2], "refine-cam ")
		if !ok {
			continue
		}
		p := RefineCAM.NewParams().(*RefineCAMParams)
		p.Layer, p.Also = Layers(words[1]), []string{others[words[0]]}
		p.Base, p.Variant = base, "official-gildenblat"
		got := rescaled(mapsOf(t, RefineCAM, p, attnLRPInput(t, "quickstart/"+words[0]))[0])
		var some []float64
		for i := 0; i < 64; i += 3 {
			for j := 0; j < 64; j += 3 {
				some = append(some, got[64*i+j])
			}
		}
		tolerance, both := 2e-5, 0.0
		if base == "grad-cam-plus-plus" { // each factor is divided by its largest value, with the same error
			for _, layer := range []string{words[1], others[words[0]]} {
				both += 2 * rounding * conditionOf(t, words[0], layer, base)
			}
			tolerance = max(tolerance, both)
		}
		near(t, key, singles(some), singles(want), tolerance)
	}
}

// TestRefineCAMMultiplies checks that the default is the product of the two layers' maps, each divided by its
// largest value at the layer, and what is refused.
func TestRefineCAMMultiplies(t *testing.T) {
	in := attnLRPInput(t, "quickstart/resnet")
	got := mapsOf(t, RefineCAM, RefineCAM.NewParams(), in)[0]
	want := slices.Repeat([]float64{1}, len(got))
	for _, layer := range []string{"middle", "final"} {
		p := GradCAMPlusPlus.NewParams().(*GradCAMPlusPlusParams)
		p.Layer = Layers(layer)
		large := mapsOf(t, GradCAMPlusPlus, p, in)[0]
		p.Size = "layer"
		most := slices.Max(mapsOf(t, GradCAMPlusPlus, p, in)[0])
		for k, v := range large {
			want[k] *= v / most
		}
	}
	near(t, "the product", singles(got), singles(want), 1e-5)
	for what, change := range map[string]func(p *RefineCAMParams){
		"names no layer": func(p *RefineCAMParams) { p.Also = nil },
		"inner layers":   func(p *RefineCAMParams) { p.Also = []string{"input"} },
		"named twice":    func(p *RefineCAMParams) { p.Also = []string{"final"} },
		"size layer":     func(p *RefineCAMParams) { p.Size = "layer" },
		"relu false":     func(p *RefineCAMParams) { p.ReLU = false },
	} {
		p := RefineCAM.NewParams().(*RefineCAMParams)
		change(p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestReciproCAMMasks checks that the default shows a cell of feature maps, and a Gaussian at tokens.
func TestReciproCAMMasks(t *testing.T) {
	for net, mask := range map[string]string{"resnet": "cell", "vit": "gaussian"} {
		in := attnLRPInput(t, "quickstart/"+net)
		p := ReciproCAMParams{atFinal(), "default", joined()}
		q := ReciproCAMParams{atFinal(), mask, joined()}
		if got, want := mapsOf(t, ReciproCAM, &p, in)[0], mapsOf(t, ReciproCAM, &q, in)[0]; !slices.Equal(got,
			want) {
			t.Errorf("%s: the default isn't %s", net, mask)
		}
	}
}

// TestReciproCAMIsGradCAM checks that, for a net that averages the last layer's places and has one linear
// layer behind, the map is Grad-CAM's with both signs plus the bias, the same number at all places.
func TestReciproCAMIsGradCAM(t *testing.T) {
	in := officialInput(t, "gapcnn", "gapcnn_io", "unit")
	at := GradientCAM{CAM: CAM{tappedAt("final"), false, "bilinear", joined()}}
	at.Size = "layer"
	mean := mapsOf(t, GradCAM, &GradCAMParams{at}, in)
	for i, m := range mapsOf(t, ReciproCAM, &ReciproCAMParams{at.Tapped, "default", joined()}, in) {
		bias := m[0] - mean[i][0]
		want := slices.Clone(mean[i])
		for k := range want {
			want[k] += bias
		}
		near(t, fmt.Sprintf("item %d", i), singles(m), singles(want), 1e-5)
	}
}

// TestXGradCAMSums checks what the paper asks of weights: each channel's part of the map sums to the
// channel's value times derivative, so that the whole sums to HiResCAM's map.
func TestXGradCAMSums(t *testing.T) {
	in := attnLRPInput(t, "quickstart/resnet")
	at := GradientCAM{CAM: CAM{tappedAt("middle"), false, "bilinear", joined()}}
	at.Size = "layer"
	sum := func(values []float64) (s float64) {
		for _, v := range values {
			s += v
		}
		return s
	}
	got := sum(mapsOf(t, XGradCAM, &XGradCAMParams{at, "paper"}, in)[0])
	want := sum(mapsOf(t, HiResCAM, &HiResCAMParams{at}, in)[0])
	if !(math.Abs(got-want) <= 1e-5*math.Abs(want)) {
		t.Errorf("XGrad-CAM sums to %v, HiResCAM to %v", got, want)
	}
	weights := []float64{1, 1}
	XGradCAMParams{Variant: "paper"}.weigh([]float64{2, -2}, []float64{1, 3}, weights, 0)
	if weights[0] != 0 || weights[1] != 0 {
		t.Errorf("a channel that sums to 0 counts %v", weights)
	}
}

// TestPrincipal holds eigenvectors against their equation, for matrices with known eigenvalues: some that
// decrease slowly, a multiple one, and zeros.
func TestPrincipal(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, values := range [][]float64{
		{5, 4.99, 3, 1}, {1, 1, 0}, {0, 0}, {7}, decreasing(90),
	} {
		m := len(values)
		var axes [][]float64 // orthonormal
		for len(axes) < m {
			v := make([]float64, m)
			for k := range v {
				v[k] = r.NormFloat64()
			}
			for range 2 {
				for _, a := range axes {
					along := dot(a, v)
					for k := range v {
						v[k] -= along * a[k]
					}
				}
			}
			normalise(v)
			axes = append(axes, v)
		}
		matrix := make([][]float64, m)
		for i := range matrix {
			matrix[i] = make([]float64, m)
			for j := range m {
				for k, value := range values {
					matrix[i][j] += value * axes[k][i] * axes[k][j]
				}
			}
		}
		v := principal(matrix)
		image := times(matrix, v)
		for k := range v {
			if !(math.Abs(image[k]-values[0]*v[k]) <= 1e-9*max(values[0], 1)) {
				t.Errorf("eigenvalues %v…: element %d of Mv is %v, of λv %v", values[0], k, image[k],
					values[0]*v[k])
			}
		}
		if length := dot(v, v); values[0] > 0 && !(math.Abs(length-1) <= 1e-12) {
			t.Errorf("length %v", length)
		}
	}
}

// decreasing returns n eigenvalues each of which is a percent below the one before.
func decreasing(n int) []float64 {
	out := make([]float64, n)
	for k := range out {
		out[k] = math.Pow(0.99, float64(k))
	}
	return out
}

// TestEigenCAMSigns checks the sign of projections: the largest magnitude is positive, and of two equal ones
// the first.
func TestEigenCAMSigns(t *testing.T) {
	for _, tt := range []struct{ values, want []float64 }{
		{[]float64{-3, 1, 0, 0}, []float64{3, -1, 0, 0}},
		{[]float64{-2, 2, 0, 0}, []float64{2, -2, 0, 0}},
		{[]float64{0, 0, 0, 0}, []float64{0, 0, 0, 0}},
	} {
		p := planes{tt.values, 1, 2, 2}
		if got := p.projected(false); !slices.Equal(got, tt.want) {
			t.Errorf("%v becomes %v, want %v", tt.values, got, tt.want)
		}
	}
}
