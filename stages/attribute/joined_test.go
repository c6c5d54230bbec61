package attribute

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// joinable are the methods that join the maps of several layers.
var joinable = map[string]stages.Stage{"ablation-cam": AblationCAM, "eigen-cam": EigenCAM,
	"grad-cam": GradCAM, "grad-cam-elementwise": GradCAMElementwise, "grad-cam-plus-plus": GradCAMPlusPlus,
	"hires-cam": HiResCAM, "layer-cam": LayerCAM, "recipro-cam": ReciproCAM, "score-cam": ScoreCAM,
	"xgrad-cam": XGradCAM}

// with returns a method's parameters with some that are texts.
func with(t *testing.T, s stages.Stage, values map[string]string) any {
	t.Helper()
	params := s.NewParams()
	set := map[string]bool{}
	for _, f := range stages.Fields(params) {
		if v, ok := values[f.Name]; ok {
			reflect.ValueOf(params).Elem().FieldByIndex(f.Index).SetString(v)
			set[f.Name] = true
		}
	}
	for name := range values {
		if !set[name] && name != "variant" {
			t.Fatalf("%s has no parameter %s", s.Name, name)
		}
	}
	return params
}

// third returns every third value of the rows and columns of a map of 64 × 64.
func third(m []float64) (some []float64) {
	for i := 0; i < 64; i += 3 {
		for j := 0; j < 64; j += 3 {
			some = append(some, m[64*i+j])
		}
	}
	return some
}

// TestJoined compares maps of several layers with grad-cam's means, torch-cam's maxima and its products, and
// maps of one layer with torch-cam's.
func TestJoined(t *testing.T) {
	for key, want := range keptMaps(t, "joined.json") {
		words := strings.SplitN(key, " ", 4) // net, layers, join or peer, method
		s, in := joinable[words[3]], attnLRPInput(t, "quickstart/"+words[0])
		layers := strings.Split(words[1], "|")
		set := map[string]string{"layer": layers[0], "size": "layer"}
		if len(layers) > 1 {
			set = map[string]string{"layer": "[" + strings.Join(layers, ", ") + "]", "join": words[2],
				"scale": "range"}
		}
		if words[2] == "mean" {
			set["variant"] = "official-gildenblat"
		}
		switch words[2] {
		case "finer":
			in["model"] = []stages.Data{modeltest.Explaining(t, in["model"][0],
				model.TargetParams{Target: "finer(output, 3)"})}
			r := stagetest.Run(t, model.Predict, nil, map[string][]stages.Data{"images": in["images"],
				"model": in["model"]})
			in["targets"] = []stages.Data{stagetest.Items(nil, r.Payloads["targets"][0])}
		case "product":
			s, set["base"] = RefineCAM, words[3]
		}
		got := mapsOf(t, s, with(t, s, set), in)[0]
		if len(layers) > 1 {
			got = third(got)
		}
		near(t, key, singles(got), singles(want), 2e-5)
	}
}

// TestJoins checks that a joined map is what the maps of the layers make, for every method.
func TestJoins(t *testing.T) {
	in := attnLRPInput(t, "quickstart/resnet")
	for name, s := range joinable {
		var parts [][]float64
		for _, layer := range []string{"middle", "final"} {
			large := mapsOf(t, s, with(t, s, map[string]string{"layer": layer}), in)[0]
			most := 0.0
			for _, v := range mapsOf(t, s, with(t, s, map[string]string{"layer": layer, "size": "layer"}),
				in)[0] {
				most = max(most, math.Abs(v))
			}
			for k := range large {
				large[k] /= most
			}
			parts = append(parts, large)
		}
		for how, join := range map[string]func(a, b float64) float64{
			"mean":    func(a, b float64) float64 { return (a + b) / 2 },
			"max":     func(a, b float64) float64 { return max(a, b) },
			"product": func(a, b float64) float64 { return a * b },
		} {
			p := with(t, s, map[string]string{"layer": "[middle, final]", "join": how})
			if name == "recipro-cam" && how == "product" {
				err := p.(interface{ Validate() error }).Validate()
				if err == nil || !strings.Contains(err.Error(), "two negative values") {
					t.Errorf("%s, %s: %v", name, how, err)
				}
				continue
			}
			want := make([]float64, len(parts[0]))
			for k := range want {
				want[k] = join(parts[0][k], parts[1][k])
			}
			near(t, name+" "+how, singles(mapsOf(t, s, p, in)[0]), singles(want), 1e-6)
		}
	}
}

// TestLayersText checks how layers are read and written, and what is refused.
func TestLayersText(t *testing.T) {
	for text, want := range map[string][]string{"final": {"final"}, "[final]": {"final"},
		"[middle,final]": {"middle", "final"}, "[ a , b, c ]": {"a", "b", "c"}, "/x[0]/Add": {"/x[0]/Add"}} {
		var l, again Layers
		if err := l.UnmarshalText([]byte(text)); err != nil || !slices.Equal(l.List(), want) {
			t.Errorf("%s: %q, %v", text, l.List(), err)
		}
		b, err := l.MarshalText()
		if err != nil || again.UnmarshalText(b) != nil || again != l {
			t.Errorf("%s is written %s and read %q", text, b, again)
		}
	}
	for text, want := range map[string]string{"[middle, middle]": "named twice", "[middle,]": "no name"} {
		var l Layers
		if err := l.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for want, p := range map[string]any{
		"inner layers are joined": with(t, GradCAM, map[string]string{"layer": "[input, final]"}),
		"at the image's size": with(t, GradCAM, map[string]string{"layer": "[middle, final]",
			"size": "layer"}),
		"makes its map at one":       with(t, Saliency, map[string]string{"layer": "[middle, final]"}),
		"makes its map at the input": with(t, AGI, map[string]string{"layer": "[middle, final]"}),
		"this method multiplies":     with(t, RefineCAM, map[string]string{"join": "mean"}),
	} {
		if err := p.(interface{ Validate() error }).Validate(); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
}
