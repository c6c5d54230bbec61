package registry_test

import (
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

// otherwise are what parameters without a list of choices are set to.
var otherwise = map[string][]string{
	"target": {"label", "1", "predicted:2", "2-1", "predicted-predicted:2"},
	"layer":  {"input", "middle", "final"},
}

// afterwards are parameters of what a stage makes of answers that programs returned.
var afterwards = []string{"reduce", "size", "ties", "upsample", "values"}

// TestProgramsOfChoices is TestPrograms with every other choice of each parameter of programs, one at a time,
// with targets of every kind and with inner layers.
func TestProgramsOfChoices(t *testing.T) {
	if _, err := ort.Default(); err != nil {
		stagetest.Lacks(t, err.Error())
	}
	var cases []programCase
	for _, net := range []string{"resnet", "vit"} {
		cases = append(cases, programChoices(net,
			givenTo(t, filepath.Join("..", "experiments", "quickstart", net+".onnx"), "half"))...)
	}
	for _, c := range stagetest.Sample(t, 8, cases) {
		t.Run(c.name, c.sameProgram)
	}
}

func programChoices(net string, given map[stages.Type]stages.Data) (cases []programCase) {
	two := maps.Clone(given) // classes whose difference is explained
	pair := stages.NewTensor([]int64{2, 1}, 2).Encode()
	two[stages.Targets] = stagetest.Items(nil, pair, pair)
	for _, s := range everyStage() {
		if s.Program == nil {
			continue
		}
		for _, f := range stages.Fields(s.NewParams()) {
			if slices.Contains(afterwards, f.Name) || f.Name == "precision" { // of the same nodes
				continue
			}
			for _, choice := range append(f.Choices, otherwise[f.Name]...) {
				p := fewer(s.NewParams())
				at := reflect.ValueOf(p).Elem().FieldByIndex(f.Index)
				if f.Written(at.String()) == choice {
					continue
				}
				value, _ := f.Stored(choice)
				at.SetString(value)
				if v, ok := p.(interface{ Validate() error }); ok && v.Validate() != nil {
					continue
				}
				c := programCase{name: net + "/" + s.Name + "/" + f.Name + "/" + choice, stage: s, params: p,
					given: given, unwired: "baselines"}
				if f.Name == "target" && strings.Contains(choice, "-") {
					c.given = two
				}
				cases = append(cases, c)
			}
		}
	}
	return cases
}

// fewer has parameters ask for a few samples and steps, which takes less time.
func fewer(params any) any {
	for _, f := range stages.Fields(params) {
		at := reflect.ValueOf(params).Elem().FieldByIndex(f.Index)
		switch f.Name {
		case "masks", "samples", "steps":
			at.SetInt(min(at.Int(), 8))
		}
	}
	return params
}
