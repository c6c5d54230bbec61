package scores

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/english"
	"github.com/runexp/runexp/stages/interval"
)

// Exactly are the parameters of reports that estimate what exact scores of all images would say.
type Exactly struct {
	Exact string `yaml:"exact" key:"added" doc:"float32: means, intervals and tests are those of float32, estimated of scores in a faster precision: float32 is computed for a random part of the images alone, as many as have intervals grow by at most 2 %"`
	Cheap string `yaml:"cheap" key:"added" doc:"exact: the precision of the scores, as the answer calls it; default: that of the stages that are computed once more"`
	Pilot int    `yaml:"pilot" key:"added" doc:"exact: number of images of the pilot, whose differences say how many images are computed in float32" min:"8" max:"100000"`
}

// UsualExactly are the defaults.
var UsualExactly = Exactly{Pilot: 32}

// Validate refuses other precisions.
func (x Exactly) Validate() error {
	if x.Exact != "" && x.Exact != stages.Float32 {
		return stages.BadField("exact", "exact is %s, or left out: %q isn't the precision of a reference",
			stages.Float32, x.Exact)
	}
	return nil
}

// ExactDoc describes them in the documentation of stages.
const ExactDoc = `
With exact: float32, float32's answer is estimated from scores in a faster precision: the
stages between the images and the scores run once more in float32, for a random
pilot of the images and then for as many others as keep intervals from growing by more than
2 %. Means are the difference estimator's, without bias whatever the error:
Angelopoulos et al., "Prediction-Powered Inference", Science 2023. p is of the signed-rank
test with ranks that are estimated alike. docs/exact.md has the formulas.`

// ExactPorts are the inputs that they add, for cheap scores on a port. The engine feeds them where the
// parameter exact is set. rank is the parameter with the axis to compare; "" without one.
func ExactPorts(of, rank string) []stages.Port {
	again := stages.Again{Of: of, Param: "precision", As: "exact", From: "cheap", Draw: "dataset/draw"}
	if rank != "" {
		again.Takes = map[string]string{"rank": rank}
	}
	pilot, second := again, again
	pilot.Count, second.Size, second.After = "pilot", "dataset/second-phase", "pilot"
	return []stages.Port{
		{Name: "pilot", Type: stages.Scores, Averages: true, Optional: true, Added: true, Again: &pilot,
			Doc: "exact scores of a random pilot of the images"},
		{Name: "exact", Type: stages.Scores, Averages: true, Optional: true, Added: true, Version: 1,
			Again: &second, Doc: "exact scores of a random part of the other images"},
	}
}

// CheckExactly refuses inputs and parameters that contradict each other.
func (x Exactly) CheckExactly(wired func(string) bool) error {
	given := x.Exact != "" || wired("exact")
	switch {
	case !given && x.Pilot != UsualExactly.Pilot:
		return stages.BadField("pilot", "pilot means nothing without exact: %s", stages.Float32)
	case !given && x.Cheap != "":
		return stages.BadField("cheap", "cheap means nothing without exact")
	case x.Exact != "" && wired("exact"):
		return stages.BadField("exact", "exact is wired: leave out the parameter, which wires it")
	case wired("pilot") && !wired("exact"):
		return fmt.Errorf("pilot is wired without exact, the scores of the second phase")
	}
	return nil
}

// An Exactness says how much of the scores was measured exactly.
type Exactness struct {
	cheap    string // what the others are: a precision, or other cheap scores
	wired    bool   // of inputs that the experiment wires, which needn't be of float32
	items    string
	measured [2]int  // items: the fewest and the most of a cell
	of       int     // items: the most of a cell
	growth   float64 // the largest of an interval
}

// AddExact gives cells, which may be parts on the axes by, what is on the ports of [ExactPorts]. It returns
// nil if nothing is.
func (p Exactly) AddExact(ctx context.Context, e *stages.Env, of string, cells []*Cell, by ...string,
) (*Exactness, error) {
	if !e.Wired("exact") {
		return nil, nil
	}
	if err := AddExact(ctx, cells, e.Ports["pilot"], e.Ports["exact"], by...); err != nil {
		return nil, err
	}
	x := &Exactness{items: stages.ItemsOf(e.Ports[of]), wired: p.Exact == "",
		cheap: cmp.Or(p.Cheap, "a faster precision")}
	if x.wired {
		x.cheap = cmp.Or(p.Cheap, "cheap scores")
	}
	var measured, all []int // by cell, of all its parts
	at := map[string]int{}
	for _, c := range cells {
		s, name := c.Sample(), fmt.Sprint(outside(c.Coord, by))
		k, ok := at[name]
		if !ok {
			k, measured, all = len(all), append(measured, 0), append(all, 0)
			at[name] = k
		}
		measured[k] += s.Measured()
		all[k] += len(s.Exact)
		x.Grew(s)
	}
	if len(all) > 0 {
		x.measured, x.of = [2]int{slices.Min(measured), slices.Max(measured)}, slices.Max(all)
	}
	return x, nil
}

// Grew notes the interval of a sample.
func (x *Exactness) Grew(s interval.Sample) {
	if g := s.Growth(); x != nil && g > x.growth {
		x.growth = g
	}
}

// Title is what the title of a table ends with.
func (x *Exactness) Title() string {
	if x == nil {
		return ""
	}
	kind := stages.Float32
	if x.wired {
		kind = "exact scores"
	}
	return fmt.Sprintf(", %s of %s of %s", kind, span(x.measured), english.CountOf(x.of, x.items))
}

// Source says what means are of, with a space before it and no full stop behind.
func (x *Exactness) Source() string {
	from, computed := "float32's answer from passes in", "were computed in float32"
	if x.wired {
		from, computed = "the answer of exact scores, estimated from", "have exact scores"
	}
	all := english.CountOf(x.of, x.items)
	if x.measured[0] == x.of {
		return fmt.Sprintf(" All %s %s: nothing is estimated, and exact saves nothing", all, computed)
	}
	return fmt.Sprintf(" This is %s %s: %s of %s %s", from, x.cheap, span(x.measured), all, computed)
}

// Sentence says what means are of and how much their intervals grew, rounded up, with a space before it; ""
// where all scores are as they are.
func (x *Exactness) Sentence() string {
	if x == nil {
		return ""
	}
	text := x.Source()
	if !math.IsInf(x.growth, 1) && x.measured[0] < x.of {
		text += fmt.Sprintf(", and intervals grew by at most %.1f %%", math.Ceil(1000*x.growth-1e-9)/10)
	}
	return text + "."
}

// span writes the fewest and the most.
func span(n [2]int) string {
	if n[0] == n[1] {
		return fmt.Sprint(n[0])
	}
	return fmt.Sprintf("%d to %d", n[0], n[1])
}
