package parity

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// always are the ports whose numbers are the same by definition, with the reason.
var always = map[string]string{
	"attribute/idgi completeness": "its steps are scaled to sum to the output's difference",
}

// least is the mean magnitude that [stages.Deviation] takes a map to have at least: maps below it are
// rounding.
const least = 1e-6

// shows returns an error if a comparison with a stage's results shows nothing: if a port's numbers are all
// one number, which any constant reproduces, or its maps below least. Whole numbers, such as classes, may be
// the same.
func shows(s *stages.Stage, r stagetest.Result) error {
	for _, port := range s.Outputs {
		if always[s.Name+" "+port.Name] != "" {
			continue
		}
		x, err := fractions(port.Type, r.Payloads[port.Name])
		if err != nil {
			return fmt.Errorf("%s: %w", port.Name, err)
		}
		magnitude := 0.0
		for _, v := range x {
			magnitude += math.Abs(v)
		}
		if len(x) > 0 && (magnitude == 0 || len(x) > 1 && slices.Min(x) == slices.Max(x)) {
			return fmt.Errorf("all numbers of %s are %g", port.Name, x[0])
		}
		if mean := magnitude / float64(len(x)); port.Type == stages.Maps && mean < least {
			return fmt.Errorf("%s have a mean magnitude of %.1g", port.Name, mean)
		}
	}
	return nil
}

// fractions returns the floating-point numbers of all items of a port.
func fractions(of stages.Type, payloads [][]byte) (all []float64, err error) {
	for _, b := range payloads {
		switch of.Form {
		case stages.FormTensor:
			x, err := stages.DecodeTensor(b)
			if err != nil {
				return nil, err
			}
			if x.DType == stages.F32 || x.DType == stages.F64 {
				all = append(all, x.Float64s()...)
			}
		case stages.FormTable:
			t, err := stages.DecodeTable(b)
			if err != nil {
				return nil, err
			}
			for _, row := range t.Rows {
				for _, v := range row.Numbers {
					all = append(all, float64(v))
				}
			}
		}
	}
	return all, nil
}

// TestNetsShow checks that each stage has a net on which a comparison of its results shows something.
func TestNetsShow(t *testing.T) {
	why := map[string]string{}
	shown := map[string]bool{}
	for _, net := range nets {
		w := newWorld(t, net)
		for _, s := range deviceStages() {
			r, err := stagetest.TryOn(w.cpu, *s, w.params(s), w.in(s))
			if err == nil {
				err = shows(s, r)
			}
			if err != nil {
				why[s.Name] += fmt.Sprintf("\n%s: %v", net, err)
			}
			shown[s.Name] = shown[s.Name] || err == nil
		}
	}
	for _, s := range deviceStages() {
		if !shown[s.Name] {
			t.Errorf("%s: a comparison shows nothing on any net:%s", s.Name, why[s.Name])
		}
	}
}

// TestShows checks what shows refuses.
func TestShows(t *testing.T) {
	s, _ := registry.Builtin().Lookup("attribute/saliency")
	for name, of := range map[string]struct {
		maps [][]float32
		want bool
	}{
		"zero": {[][]float32{{0, 0}, {0, 0}}, false}, "one number": {[][]float32{{2, 2}, {2, 2}}, false},
		"rounding": {[][]float32{{1e-8, 0}, {0, 2e-8}}, false}, "a map": {[][]float32{{0, 0}, {0, 1}}, true},
	} {
		r := stagetest.Result{Payloads: map[string][][]byte{}}
		for _, m := range of.maps {
			r.Payloads["maps"] = append(r.Payloads["maps"], stages.NewTensor(m, 1, 2).Encode())
		}
		if err := shows(s, r); (err == nil) != of.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
