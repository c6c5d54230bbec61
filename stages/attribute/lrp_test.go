package attribute

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestLRPConservationTable checks that the accounts begin with the logit, that every line adds up, and that
// what reaches the image is what its map sums to.
func TestLRPConservationTable(t *testing.T) {
	a := read(t, "zennit_lrp", "smallcnn_img0.npz")
	in := officialImage(modeltest.Official(t, "smallcnn", 0), a["x"].Float32s(), a["target"].Int64s()[0])
	p := LRPConservation.NewParams().(*LRPConservationParams)
	r := stagetest.Run(t, LRPConservation, p, in)
	var table stages.Table
	if err := json.Unmarshal(r.Payloads["table"][0], &table); err != nil {
		t.Fatal(err)
	}
	first, last := table.Rows[0], table.Rows[len(table.Rows)-1]
	logit := float64(slices.Max(a["logits"].Float32s()))
	if got := float64(first.Numbers[0]); !(math.Abs(got-logit) <= 1e-5*math.Abs(logit)) {
		t.Errorf("it begins with %v, the logit is %v", got, logit)
	}
	total := 0.0
	for _, row := range table.Rows {
		if rest := float64(row.Numbers[3]); !(math.Abs(rest) <= 1e-3) {
			t.Errorf("%v: %v is neither passed on nor taken", row.Keys, rest)
		}
		total += float64(row.Numbers[2])
	}
	if total == 0 {
		t.Error("biases take nothing")
	}
	m := stagetest.Run(t, LRPEpsilon, LRPEpsilon.NewParams(), in)
	sum := 0.0
	for _, v := range tensor(t, m.Payloads["maps"][0]) {
		sum += float64(v)
	}
	if got := float64(last.Numbers[1]); !(math.Abs(got-sum) <= 1e-3) {
		t.Errorf("%v reaches the image, its map sums to %v", got, sum)
	}
	if got := scalar(t, m.Payloads["conservation"][0]); !(math.Abs(got*logit-sum) <= 1e-3) {
		t.Errorf("%v of %v is %v, the map sums to %v", got, logit, got*logit, sum)
	}
}

// TestRelevanceAtLayers checks that methods of relevance make maps at every layer, of a net of convolutions
// and of a transformer.
func TestRelevanceAtLayers(t *testing.T) {
	for net, io := range map[string]string{"smallcnn": "smallcnn_io", "timm_vit_op17": "timm_vit_io"} {
		in := officialInput(t, net, io, "unit")
		for _, layer := range []string{"input", "middle", "final"} {
			r := relevant()
			r.Tapped = tappedAt(layer)
			for name, m := range map[string]struct {
				stage  stages.Stage
				params any
			}{
				"composite": {LRPComposite, &LRPCompositeParams{r, "epsilon-gamma-box", 1e-6, 0.25}},
				"crap":      {CRAP, &CRAPParams{RAPParams{r.Tapped, "paper"}, "single-pass"}},
			} {
				for i, m := range mapsOf(t, m.stage, m.params, in) {
					if least, most := slices.Min(m), slices.Max(m); len(m) != 32*32 || !(least < most) ||
						math.IsInf(least, 0) || math.IsInf(most, 0) {
						t.Errorf("%s: %s at %s, item %d: %d values from %v to %v", net, name, layer, i,
							len(m), least, most)
					}
				}
			}
		}
	}
}

func TestRelevanceRefuses(t *testing.T) {
	probability, difference := relevant(), relevant()
	probability.Output = "probability"
	difference.Target = "3-2"
	for want, p := range map[string]interface{ Validate() error }{
		"alpha − beta":     LRPAlphaBetaParams{Relevant: relevant(), Alpha: 2, Beta: 2},
		"output: a probab": CLRPParams{Relevant: probability, NamedRules: NamedRules{Rules: "z-plus"}},
		"rule for first": CLRPParams{Relevant: relevant(), NamedRules: NamedRules{FirstLayer{"box"},
			"epsilon-plus-flat"}},
		"starts at the class": RAPParams{Tapped: probability.Tapped},
		"target: 3-2":         CLRPParams{Relevant: difference, NamedRules: NamedRules{Rules: "z-plus"}},
		"3-2 is a difference": CRAPParams{RAPParams: RAPParams{Tapped: difference.Tapped}},
	} {
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v doesn't say %q", err, want)
		}
	}
	in := officialInput(t, "smallcnn", "smallcnn_io", "unit")
	compared := program.Target{Class: 3, Minus: 2}.Payload()
	in["targets"] = []stages.Data{stagetest.Items(nil, compared, compared)}
	if _, err := stagetest.Try(CLRP, nil, in); err == nil || !strings.Contains(err.Error(),
		"difference of classes") {
		t.Errorf("%v", err)
	}
}

// TestFirstOfPresets checks that a preset without a rule for first layers takes one, and that one which has
// its own refuses another.
func TestFirstOfPresets(t *testing.T) {
	in := officialInput(t, "smallcnn", "smallcnn_io", "unit")
	maps := func(rules, first string) [][]byte {
		p := CLRP.NewParams().(*CLRPParams)
		p.Rules, p.First = rules, first
		return stagetest.Run(t, CLRP, p, in).Payloads["maps"]
	}
	if d := cmp.Diff(maps("epsilon-plus-flat", "same"), maps("epsilon-plus", "flat")); d != "" {
		t.Errorf("epsilon-plus with flat first layers isn't epsilon-plus-flat: %s", d)
	}
	for _, rules := range []string{"epsilon-plus-flat", "epsilon-gamma-box"} {
		p := CLRP.NewParams().(*CLRPParams)
		p.Rules, p.First = rules, "flat"
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "have a rule for first layers") {
			t.Errorf("%s: error %v", rules, err)
		}
	}
}

// TestPresets checks that every preset that can be chosen has rules for all layers.
func TestPresets(t *testing.T) {
	for field, params := range map[string]any{"Preset": LRPCompositeParams{}, "Rules": NamedRules{}} {
		f, _ := reflect.TypeOf(params).FieldByName(field)
		names := strings.Split(f.Tag.Get("choices"), "|")
		if len(names) < len(presets) {
			t.Errorf("%s: only %d choices of %d presets", field, len(names), len(presets))
		}
		for _, name := range names {
			c := relevant().named(&program.Net{}, name, FirstLayer{"same"})
			first := strings.HasSuffix(name, "-flat") || strings.HasSuffix(name, "-box")
			if c.Conv.Name == "" || c.Dense.Name == "" || first != (c.First.Name != "") {
				t.Errorf("%s: rules %q, %q, %q", name, c.Conv.Name, c.Dense.Name, c.First.Name)
			}
		}
	}
}

// TestRelevanceLost checks that maps that have lost most of the relevance that they started with give a
// warning, of one reason, and that default parameters keep it on nets with and without attention.
func TestRelevanceLost(t *testing.T) {
	for net, io := range map[string]string{"smallcnn": "smallcnn_io", "timm_vit_op17": "timm_vit_io"} {
		in := officialInput(t, net, io, "unit")
		p := LRPEpsilon.NewParams().(*LRPEpsilonParams)
		if r := stagetest.Run(t, LRPEpsilon, p, in); len(r.Warnings) > 0 {
			t.Errorf("%s: warnings %q", net, r.Warnings)
		}
		p.Epsilon = 1000
		if r := stagetest.Run(t, LRPEpsilon, p, in); len(r.Warnings) != 2 ||
			!strings.Contains(r.Warnings[0], "relevance is not conserved") {
			t.Errorf("%s: warnings %q", net, r.Warnings)
		}
	}
	for share, want := range map[float64]bool{1: false, 0.25: false, 4: false, math.NaN(): false, 0.2: true,
		0: true, -1: true, -3.5: true, 4.5: true, math.Inf(1): true} {
		if unconserved(share) != want {
			t.Errorf("a share of %v is lost: %t", share, !want)
		}
	}
}
