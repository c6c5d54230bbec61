package score

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// SubsetParams are the parameters that the metrics of replaced subsets have in common.
type SubsetParams struct {
	Response string `yaml:"response" doc:"the response that changes: the class's logit or probability" choices:"logit|probability"`
	Values   string `yaml:"values" doc:"a pixel's relevance: the sum over channels, its magnitude, or its positive part" choices:"signed|magnitude|positive"`
}

func (p SubsetParams) subset() SubsetParams { return p }

// subsetInputs are the inputs of a metric of replaced subsets: wiring the first two is enough.
func subsetInputs() []stages.Port {
	return []stages.Port{
		{Name: "maps", Type: stages.Maps, Doc: "attribution maps"},
		{Name: "subsets", Type: stages.Subsets, SameTarget: "maps",
			Doc: "subsets of units, of perturb/subset"},
		{Name: "responses", Type: stages.Responses, Beside: "subsets",
			Doc: "the responses while they are replaced"},
		{Name: "units", Type: stages.Segments, Beside: "subsets", Doc: "the unit of each pixel"},
	}
}

// taking returns a check that refuses subsets drawn in another way than one of these.
func taking(draws ...string) func(in map[string]stages.Facts) error {
	return func(in map[string]stages.Facts) error {
		if draw := in["subsets"]["draw"]; !slices.Contains(draws, draw) {
			return fmt.Errorf("the subsets are drawn by %q: it needs perturb/subset with draw: %s", draw,
				draws[0])
		}
		return nil
	}
}

// replaced are the subsets of an item and the responses while they are replaced, in which equal subsets that
// follow one another are repeats.
type replaced struct {
	metric.Subsets
	units   metric.Units
	repeats int
	image   float64   // the response to the image
	rows    []float64 // to the image with each subset replaced
}

// replacedOf reads the subsets of item i.
func replacedOf(e *stages.Env, i int, response string) (s replaced, height, width int, err error) {
	if s.units, height, width, err = metric.Numbered(e.In("units", i)); err != nil {
		return s, 0, 0, fmt.Errorf("port units: %w", err)
	}
	if s.Subsets, err = metric.DecodeSubsets(e.In("subsets", i), s.units.Count); err != nil {
		return s, 0, 0, fmt.Errorf("port subsets: %w", err)
	}
	r, err := metric.Response(e.Facts("responses"), e.In("responses", i), response)
	if err == nil && len(r) != s.Count+2 {
		err = fmt.Errorf("%d responses don't match %d subsets, the image and its replacement", len(r),
			s.Count)
	}
	if err != nil {
		return s, 0, 0, fmt.Errorf("port responses: %w", err)
	}
	s.image, s.rows = r[0], r[1:len(r)-1]
	s.repeats = 1
	if text := e.Facts("subsets")["repeats"]; text != "" {
		if s.repeats, err = strconv.Atoi(text); err != nil || s.repeats < 1 || s.Count%s.repeats != 0 {
			return s, 0, 0, fmt.Errorf("port subsets: %d rows aren't %q repeats of each", s.Count, text)
		}
	}
	return s, height, width, nil
}

// drops returns f(x) − f(x_S) for each subset S, the mean over its repeats.
func (s replaced) drops() []float64 {
	return s.over(func(response float64) float64 { return s.image - response })
}

// over returns the mean of a function of the response over the repeats of each subset.
func (s replaced) over(of func(response float64) float64) (means []float64) {
	for repeats := range slices.Chunk(s.rows, s.repeats) {
		sum := 0.0
		for _, r := range repeats {
			sum += of(r)
		}
		means = append(means, sum/float64(len(repeats)))
	}
	return means
}

// relevance returns the sum of a map over each subset.
func (s replaced) relevance(values []float64) (sums []float64) {
	of := s.units.Sum(values)
	for i := 0; i < s.Count; i += s.repeats {
		sums = append(sums, s.Sum(i, of))
	}
	return sums
}

// mapOfUnits returns a map's values, a number a pixel, that match units of a size.
func mapOfUnits(payload []byte, how string, height, width int) ([]float64, error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return nil, err
	}
	values, h, w, err := metric.Values(t, how)
	if err == nil && (h != height || w != width) {
		err = fmt.Errorf("a map of %d×%d pixels doesn't match subsets of %d×%d", h, w, height, width)
	}
	return values, err
}

// subsetMetric declares a metric of replaced subsets: of puts the scores of item i, given its subsets and the
// map's values; a map whose values aren't all finite is undefined.
func subsetMetric[P interface{ subset() SubsetParams }](d stages.Def[P],
	of func(p P, e *stages.Env, i int, s replaced, values []float64) error) stages.Stage {
	d.Relation = stages.Each
	if d.Inputs == nil {
		d.Inputs = subsetInputs()
	}
	d.Run = func(_ context.Context, p P, e *stages.Env) error {
		for i := range e.Len() {
			s, height, width, err := replacedOf(e, i, p.subset().Response)
			var values []float64
			if err == nil {
				values, err = mapOfUnits(e.In("maps", i), p.subset().Values, height, width)
			}
			if err == nil {
				err = of(p, e, i, s, values)
			}
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Done(1)
		}
		return nil
	}
	return stages.New(d)
}

// subsetCorrelation declares a correlation of the relevance of subsets with the drop of the response when
// they are replaced, of subsets that a check of the inputs' facts accepts.
func subsetCorrelation[P interface{ subset() SubsetParams }](d stages.Def[P],
	correlation func(x, y []float64) float64, check func(in map[string]stages.Facts) error) stages.Stage {
	d.Outputs = []stages.Port{{Name: "scores", Type: stages.Scores, Doc: "the correlation, in [−1,1]"}}
	d.Facts = func(_ P, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		if err := check(in); err != nil {
			return nil, err
		}
		return map[string]stages.Facts{"scores": correlated().Facts(nil)}, nil
	}
	return subsetMetric(d, func(_ P, e *stages.Env, i int, s replaced, values []float64) error {
		x := math.NaN()
		if metric.Defined(values) {
			x = correlation(s.relevance(values), s.drops())
		}
		e.Put("scores", i, stages.Scalar(x))
		return nil
	})
}

// correlated is the measure of a correlation over subsets.
func correlated() stages.Measure {
	return stages.Measure{Direction: stages.Higher, Low: -1, High: 1, Tolerance: 5e-3,
		ItemTolerance: orderJump}
}

// ofSubsets completes the definition of a metric of replaced subsets.
func ofSubsets(d stages.Definition) stages.Definition {
	d.Unit = cmp.Or(d.Unit, "a pixel, a region or a segment, as perturb/subset has it, of a text a token "+
		"that isn't special")
	d.Operator = cmp.Or(d.Operator, "the substrate of perturb/subset, black by default, in the place of a "+
		"subset")
	d.Response = cmp.Or(d.Response, "the explained class's logit, or its probability")
	d.Reference = cmp.Or(d.Reference, "the response to the image itself")
	d.Randomness = cmp.Or(d.Randomness, "the subsets, by the experiment's seed and the image, the same for "+
		"all maps")
	return d
}
