package attribute

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// Replaced are the parameters of methods that make their map of the responses to images without some of their
// units. Those that perturb/subset has too are its parameters, where these methods imply it.
type Replaced struct {
	Common
	Unit      string  `yaml:"unit" doc:"what is replaced at once and gets one value: pixels, of a text its tokens but the special ones, square regions, or the segments on the port segments" choices:"pixel|region|segment"`
	Region    int     `yaml:"region" doc:"unit region: their side in pixels; the right and the lower border cut them off" min:"1" max:"1024"`
	Substrate string  `yaml:"substrate" doc:"what replaces units, as in perturb/ablation; segment-mean is the mean of each channel over the unit" choices:"blur|zero|black|mean|random|channel-mean|segment-mean|images|mask|pad|removal"`
	Kernel    int     `yaml:"kernel" doc:"blur: side of the kernel in pixels, odd" min:"1" max:"1023"`
	Sigma     float64 `yaml:"sigma" doc:"blur: standard deviation of the kernel in pixels" min:"0.01" max:"1000"`
	Share     bool    `yaml:"share" doc:"whether a unit's pixels have equal parts of its value, so that a map sums to the values of all units; otherwise each has the whole value"`
}

func replaced() Replaced {
	return Replaced{Common: common(), Unit: "region", Region: 16, Substrate: "zero", Kernel: 11, Sigma: 11}
}

// Validate refuses what [Common] refuses, and kernels without a centre.
func (p Replaced) Validate() error {
	if p.Kernel%2 == 0 {
		return stages.BadField("kernel", "kernel is %d: its side must be odd to have a centre", p.Kernel)
	}
	return p.Common.Validate()
}

func (p Replaced) common() Replaced { return p }

// explained returns the class of the responses.
func (p Replaced) explained(in map[string]stages.Declared) string { return in["subsets"]["target"] }

// declared returns what is declared of maps whose values sum to f(x) − f(substrate), or don't. The substrate
// is that of the stage that makes the subsets. A map that has a unit's whole value at each of its pixels is
// no contribution: the sum over a unit is that value times the unit's pixels.
func (p Replaced) declared(sums bool, in map[string]stages.Declared) stages.Declared {
	switch {
	case !p.Share:
		return nil
	case sums:
		return p.declares(contributionMap, in["subsets"]["reference"])
	}
	return p.declares(contributionMap, "")
}

// A game is the responses for coalitions of units: the others are replaced.
type game struct {
	metric.Subsets // the units that are replaced
	responses      []float64
	image, hidden  float64 // the responses for all units and for none
}

// gameOf returns the game of item i, and its units.
func (p Replaced) gameOf(e *stages.Env, i int) (g game, u metric.Units, height, width int, err error) {
	if u, height, width, err = metric.Numbered(e.In("units", i)); err != nil {
		err = fmt.Errorf("port units: %w", err)
	}
	if err == nil {
		g.Subsets, err = metric.DecodeSubsets(e.In("subsets", i), u.Count)
	}
	var r []float64
	if err == nil {
		r, err = metric.Response(e.Facts("responses"), e.In("responses", i), p.Output)
	}
	if err == nil && len(r) != g.Count+2 {
		err = fmt.Errorf("%d responses don't match %d subsets, the image and its substrate", len(r), g.Count)
	}
	if err != nil {
		return g, u, height, width, err
	}
	g.image, g.hidden, g.responses = r[0], r[len(r)-1], r[1:len(r)-1]
	return g, u, height, width, nil
}

// shown appends the units that a coalition shows, in rising order.
func (g game) shown(row int, to []int) []int {
	for k := range g.Units {
		if !g.Has(row, k) {
			to = append(to, k)
		}
	}
	return to
}

// solver are the parameters of a method that makes its map of the responses to coalitions.
type solver interface {
	checked
	common() Replaced
	draw() string // how perturb/subset draws them
	// solve returns the value of each unit, nil if they aren't determined, and a measure of the fit.
	solve(g game) (values []float64, fit float64)
}

// drawn are the parameters that methods share with perturb/subset.
var drawn = []string{"target", "unit", "region", "substrate", "kernel", "sigma", "draw", "samples", "paired",
	"p"}

// mostUnits is the largest number of units of a regression, which takes memory and time by its square and
// cube: the pixels of 64×64.
const mostUnits = 4096

// solvingMethod declares a method that makes its map of the responses to coalitions of a kind that
// perturb/subset draws. It runs no model itself, so that methods and scores share the passes.
func solvingMethod[P solver](d stages.Def[P]) stages.Stage {
	d.Inputs = inputs()
	d.Inputs[2].Else = "" // perturb/subset has the same parameter target, and implies model/predict
	d.Inputs = append(d.Inputs, substratesPort(),
		stages.Port{Name: "segments", Type: stages.Segments, Optional: true,
			Doc: "unit segment: which segment each pixel is of"},
		stages.Port{Name: "subsets", Type: stages.Subsets, Else: "perturb/subset", Own: true,
			Doc: "the units that are replaced at once"},
		stages.Port{Name: "responses", Type: stages.Responses, Beside: "subsets",
			Doc: "the responses to them"},
		stages.Port{Name: "units", Type: stages.Segments, Beside: "subsets", Doc: "the unit of each pixel"})
	d.Relation, d.Outputs = stages.Each, append(outputs(), d.Outputs...)
	defaults := d.Defaults
	d.Check = func(p P, wired func(string) bool) error { return checkSolver(&p, &defaults, wired) }
	withTarget(&d)
	facts := d.Facts
	d.Facts = func(p P, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		if f := in["subsets"]; f["draw"] != p.draw() || f["repeats"] != "1" {
			return nil, fmt.Errorf("the subsets are drawn by %q, %s times each: it needs perturb/subset "+
				"with draw: %s, once each", f["draw"], f["repeats"], p.draw())
		}
		if facts == nil {
			return nil, nil
		}
		return facts(p, in)
	}
	d.Run = func(ctx context.Context, p P, e *stages.Env) error { return solveItems(ctx, p, e) }
	return stages.New(d)
}

// fitted are the outputs and facts of a method that fits a linear model.
func fitted[P any](d stages.Def[P]) stages.Def[P] {
	d.Outputs = []stages.Port{{Name: "fit", Type: stages.Scores, Doc: "the share of the variance of the " +
		"responses that the values explain, R²: below 0 where their mean fits better; undefined where they " +
		"are equal"}}
	d.Facts = func(P, map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := stages.Measure{Unit: "share", Direction: stages.None, Low: math.Inf(-1), High: 1,
			Tolerance: 1e-3}
		return map[string]stages.Facts{"fit": m.Facts(nil)}, nil
	}
	return d
}

// checkSolver refuses targets, units and substrates that conflict with the wired ports, and what the stage of
// wired subsets decides.
func checkSolver[P solver](p, defaults *P, wired func(string) bool) error {
	c := (*p).common()
	if err := c.check(wired); err != nil {
		return err
	}
	if !wired("subsets") {
		if wired(stages.TextsName) {
			if err := c.checkTexts(); err != nil {
				return err
			}
		}
		if err := stages.GoesWith("unit", c.Unit, "segment", "segments", wired("segments")); err != nil {
			return err
		}
		return Hidden{Substrate: c.Substrate}.check(wired)
	}
	for _, port := range []string{"targets", "substrates", "segments"} {
		if wired(port) {
			return fmt.Errorf("the port %s is wired, but subsets is too: wire it to the stage that makes "+
				"them, and not here", port)
		}
	}
	for _, f := range stages.Fields(p) {
		is := reflect.ValueOf(p).Elem().FieldByIndex(f.Index).Interface()
		was := reflect.ValueOf(defaults).Elem().FieldByIndex(f.Index).Interface()
		if is != was && slices.Contains(drawn, f.Name) {
			return stages.BadField(f.Name, "%s is %v, but the port subsets is wired: set it of the stage "+
				"that makes them", f.Name, is)
		}
	}
	return nil
}

// checkTexts refuses what isn't for texts with all that is to be written, since defaults are for images.
func (p Replaced) checkTexts() error {
	refuse := func(field, is, write string) error {
		return &stages.FieldError{Field: field, Hint: "write " + write, Err: fmt.Errorf("%s, but the tokens "+
			"of a text are replaced by others, one by one: its pixels are its tokens", is)}
	}
	switch hides := slices.Contains([]string{"mask", "pad", "removal"}, p.Substrate); {
	case !hides && p.Unit != "pixel":
		return refuse("substrate", fmt.Sprintf("substrate is %s and unit is %s", p.Substrate, p.Unit),
			"substrate: mask, unit: pixel; substrate: pad or removal do as well")
	case !hides:
		return refuse("substrate", "substrate is "+p.Substrate, "substrate: mask, or pad or removal")
	case p.Unit != "pixel":
		return refuse("unit", "unit is "+p.Unit, "unit: pixel")
	}
	return nil
}

// solveItems puts the map of each item.
func solveItems[P solver](ctx context.Context, p P, e *stages.Env) error {
	c := p.common()
	for i := range e.Len() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		g, u, height, width, err := c.gameOf(e, i)
		fits := e.Stage.Output("fit") != nil
		if err == nil && fits && g.Units > mostUnits {
			err = fmt.Errorf("a regression of %d units is too large: give larger units, at most %d", g.Units,
				mostUnits)
		}
		if err != nil {
			return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
		}
		values, fit := p.solve(g)
		if values == nil {
			e.WarnItem(i, "%d responses don't determine the values of %d units: its map is undefined; draw "+
				"more samples", g.Count, g.Units)
			values = make([]float64, g.Units)
			fill(values, math.NaN())
		}
		if c.Share {
			pixels := make([]float64, height*width)
			fill(pixels, 1)
			for k, n := range u.Sum(pixels) {
				values[k] /= n
			}
		}
		if fits {
			e.Put("fit", i, stages.Scalar(fit))
		}
		putMap(e, i, c.reduced(metric.Spread(u, values), 1, height, width))
	}
	return nil
}
