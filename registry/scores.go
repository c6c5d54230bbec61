package registry

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// scoreTexts returns what the scores on the output ports of a stage mean under its defaults: which are
// better, and the worst and the best value. Where the facts of the inputs decide it, as the order of curves
// does, inputs have those that their names say.
func scoreTexts(s *stages.Stage) map[string]string {
	texts := map[string]string{}
	measures, reversed := measuresOf(s, ordinary), measuresOf(s, reverse)
	for port, m := range measures {
		low, high := valueText(m.Low), valueText(m.High)
		other, ok := reversed[port] // not of scores that take curves of one order alone
		switch {
		case m.Direction == stages.None:
			texts[port] = fmt.Sprintf("no direction, %s … %s", low, high)
		case ok && other.Direction != m.Direction:
			texts[port] = fmt.Sprintf("better as the curves say, %s … %s", low, high)
		case m.Direction == stages.Higher:
			texts[port] = fmt.Sprintf("higher is better, worst %s, best %s", low, high)
		default:
			texts[port] = fmt.Sprintf("lower is better, worst %s, best %s", high, low)
		}
	}
	return texts
}

func valueText(x float64) string {
	text := strconv.FormatFloat(x, 'g', 4, 64)
	return strings.NewReplacer("+Inf", "∞", "-Inf", "−∞", "-", "−").Replace(text)
}

// measuresOf returns the measures of the scores on output ports under the stage's defaults. of has the facts
// of each input.
func measuresOf(s *stages.Stage, of func(port string) stages.Facts) map[string]stages.Measure {
	if s.Facts == nil {
		return nil
	}
	in := map[string]stages.Facts{}
	for _, p := range s.Inputs {
		in[p.Name] = of(p.Name)
	}
	facts, err := s.Facts(s.NewParams(), in)
	for _, responses := range []string{"bytes", "sic,aic"} { // of perturb/pic, and of score/pic
		if err != nil {
			in["curves"] = stages.Facts{"order": "information", "responses": responses}
			facts, err = s.Facts(s.NewParams(), in)
		}
	}
	if err != nil && in["subsets"] != nil {
		in["subsets"]["draw"] = "single"
		facts, err = s.Facts(s.NewParams(), in)
	}
	if err != nil {
		return nil
	}
	measures := map[string]stages.Measure{}
	for port, f := range facts {
		if _, ok := f["low"]; ok {
			measures[port] = stages.MeasureOf(f)
		}
	}
	return measures
}

// ordinary returns facts of an input as its name says: curves that remove the most relevant pixels first,
// unless it names another order.
func ordinary(port string) stages.Facts {
	f := stages.Facts{"responses": "probability,logit,correct", "order": "morf", "direction": "lower",
		"height": "64", "width": "64", "grid": "2", "step_pixels": "64", "imputation": "noisy-linear",
		"unit": "segment"}
	switch port {
	case "insertion":
		f["order"], f["direction"] = "insertion", "higher"
	case "deletion":
		f["order"] = "deletion"
	case "lerf":
		f["order"], f["direction"] = "lerf", "higher"
	case "removed", "kept":
		f["order"], f["unit"] = map[string]string{"removed": "deletion", "kept": "insertion"}[port], "token"
	case "masked":
		f["order"] = "masked"
	case "outputs":
		f["responses"] = "morf,lerf"
	case "subsets":
		f["draw"], f["sizes"], f["shares"] = "fixed", "1", "0.1"
	}
	return f
}

// reverse returns the facts of ordinary, with the opposite order on a port of curves of any order.
func reverse(port string) stages.Facts {
	f := ordinary(port)
	if port == "curves" {
		maps.Copy(f, ordinary("lerf"))
	}
	return f
}
