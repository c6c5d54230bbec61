package attribute

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// formulaImage returns the picture by the formula of attn_lrp.py.
func formulaImage(side int) stages.Tensor {
	var out []uint8
	for c := range 3 {
		for i := range side {
			for j := range side {
				out = append(out, uint8((i*(2+c)+j*(3+2*c)+i*j/9)%256))
			}
		}
	}
	return stages.NewTensor(out, 3, side, side)
}

// attnLRPInput returns a net of attn_lrp.py, and the picture whose class 3 is explained.
func attnLRPInput(t *testing.T, net string) map[string][]stages.Data {
	t.Helper()
	p, side := model.ONNXParams{Preset: "half"}, 64
	switch name, small := strings.CutPrefix(net, "subset/"); {
	case small:
		p.Preset, side = "unit", 32
		p.Path = unpackedNet(t, filepath.Join("..", "internal", "program", "zoo", "testdata",
			"subset."+name+".trace.onnx.gz"))
	case strings.HasPrefix(net, "tokens/"):
		p.Preset, side, p.Path = "unit", 32, filepath.Join("testdata", net+".onnx")
	case strings.HasPrefix(net, "imagenet"):
		side = 224
		p.Path = filepath.Join(modeltest.Data(t), "models", net+".onnx")
	default:
		p.Path = filepath.Join("..", "..", "experiments", net+".onnx")
	}
	return map[string][]stages.Data{
		"model":   {modeltest.Model(t, p)},
		"images":  {stagetest.Items(nil, formulaImage(side).Encode())},
		"targets": {stagetest.Items(nil, stages.NewTensor([]int64{3}, 1).Encode())},
	}
}

// unpackedNet returns the path of a packed model.
func unpackedNet(t *testing.T, packed string) string {
	t.Helper()
	f, err := os.Open(packed)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "net.onnx")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A keptMap is what attn_lrp.py has of a map: its sum, its norm, and every Step-th value.
type keptMap struct {
	Sum, Norm float64
	Step      int
	Values    []float64
}

// off returns how far a map is from the kept one: the largest distance of a value, of the sum and the norm,
// relative to the largest value, the magnitudes and the norm.
func (k keptMap) off(got []float64) (values, sum, norm float64) {
	largest, total, size, squares := 0., 0., 0., 0.
	for i, v := range got {
		total += v
		size += math.Abs(v)
		squares += v * v
		if i%k.Step == 0 {
			values = math.Max(values, math.Abs(v-k.Values[i/k.Step]))
		}
		largest = math.Max(largest, math.Abs(v))
	}
	return values / largest, math.Abs(total-k.Sum) / size, math.Abs(math.Sqrt(squares)/k.Norm - 1)
}

// TestAttnLRP compares AttnLRP and CP-LRP, without and with the γ-rule, with the authors' code on nets of
// several exporters: with separate, joined and windowed attention.
func TestAttnLRP(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "attn_lrp.json"))
	if err != nil {
		t.Fatal(err)
	}
	kept, by := map[string]keptMap{}, struct{ Versions map[string]string }{}
	if err := errors.Join(json.Unmarshal(b, &kept), json.Unmarshal(b, &by)); err != nil {
		t.Fatal(err)
	}
	if by.Versions["lxt"] == "" {
		t.Error("the versions that made the maps aren't kept")
	}
	for _, net := range []string{"quickstart/vit", "imagenet_vit_tiny_patch16_224", "subset/vit",
		"subset/swin"} {
		t.Run(net, func(t *testing.T) {
			in := attnLRPInput(t, net)
			for _, rules := range []string{"cp-lrp", "attn-lrp"} {
				for _, gamma := range [][2]float64{{0, 0}, {0.25, 0.05}, {100, 1}} {
					p := attnLRP()
					p.Reduce, p.ConvGamma, p.LinearGamma = "none", gamma[0], gamma[1]
					if strings.HasPrefix(net, "subset/") { // the attention of torchvision
						p.Projections = "derivative"
					}
					var got []float64
					if rules == "cp-lrp" {
						got = mapsOf(t, CPLRP, &CPLRPParams{p}, in)[0]
					} else {
						got = mapsOf(t, AttnLRP, &p, in)[0]
					}
					key := fmt.Sprintf("%s %s %g %g", net, rules, gamma[0], gamma[1])
					values, sum, norm := kept[key].off(got)
					off := fmt.Sprintf("%s: values off by %.2g, the sum by %.2g, the norm by %.2g", key,
						values, sum, norm)
					t.Log(off)
					limit := 1e-4
					if gamma[0] == 100 { // single precision has 3e-4 after twelve blocks
						limit = 1e-3
					}
					if !(values <= limit && max(sum, norm) <= 1e-5) {
						t.Error(off)
					}
				}
			}
		})
	}
}

// TestBalancedInput: without γ the two methods are the normalised image times the gradient of their balance.
func TestBalancedInput(t *testing.T) {
	in := attnLRPInput(t, "quickstart/vit")
	p := attnLRP()
	p.ConvGamma, p.LinearGamma = 0, 0
	for backward, want := range map[string][]float64{
		"attn-lrp": mapsOf(t, AttnLRP, &p, in)[0], "balanced": mapsOf(t, CPLRP, &CPLRPParams{p}, in)[0],
	} {
		q := InputXGradientParams{plain(tapped())}
		if err := q.Backward.UnmarshalText([]byte(backward)); err != nil {
			t.Fatal(err)
		}
		near(t, backward, singles(mapsOf(t, InputXGradient, &q, in)[0]), singles(want), 1e-5)
	}
}
