package stats

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/claims"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/scores"
)

// SensitivityParams are the parameters of [Sensitivity].
type SensitivityParams struct {
	Of        string `yaml:"of" axis:"curves" doc:"the axis of the maps' modifications"`
	Reference string `yaml:"reference" doc:"the id of the maps as they are"`
	Response  string `yaml:"response" doc:"the response of the curves"`
	Variant   string `yaml:"variant" doc:"the sum of distances by their number (paper), or as in the code of MAS for the softmax information curve by one more (official)" choices:"paper|official"`
	claims.List
}

// Validate requires the reference.
func (p SensitivityParams) Validate() error {
	if p.Reference == "" {
		return stages.BadField("reference", "reference is required: name the id of the maps as they are")
	}
	return p.List.Validate()
}

// names are those of the number in claims.
func (SensitivityParams) names() []string { return []string{"sensitivity"} }

// Known rejects claims that name unknown ids.
func (p SensitivityParams) Known(ids map[string][]string) error {
	return p.List.Known(but(ids, p.Of), p.names()...)
}

// Sensitivity is how much the curves of a metric react to modified maps.
var Sensitivity = stages.New(stages.Def[SensitivityParams]{
	Name: "stats/sensitivity",
	Doc: `how much mean curves react to modified maps

The curves of each modification are averaged over images. The distance of a
modification is the mean over points of the difference, as a magnitude; the sensitivity
is the mean of the distances over the modifications, in percent of the area under the
curve of the maps as they are: of 1 minus the area for a deletion. Mean curves of a
difference are stretched to [0,1] before. An image whose curve is undefined for a
modification is left out for all. Walker et al., "Attribution
Quality Metrics with Magnitude Alignment", IJCAI 2024, section 5.1.`,
	Version:  6,
	Relation: stages.Whole,
	Ordered:  true,
	Inputs: []stages.Port{{Name: "curves", Type: stages.Curves,
		Doc: "curves of all modifications, with points at equal distances"}},
	Outputs: []stages.Port{
		{Name: "table", Type: stages.TableType, Doc: "sensitivity, area, images, undefined curves"},
		claims.Port,
		claims.AnswerPort,
	},
	Defaults: SensitivityParams{Response: "share", Variant: paper},
	Variants: []stages.Variant{{
		Item: "number of modifications", Default: paper,
		Differs: "official: the code of MAS divides the distances of the softmax information curve by one " +
			"more than their number, so that SIC's sensitivity is 4/5 of what it should be",
		Golden: "sensitivity",
	}},
	Facts: claims.AnswerFacts[SensitivityParams],
	Run:   runSensitivity,
})

// distanceTolerance is by how many percent of the area a distance may differ on another machine.
const distanceTolerance = 0.5

func runSensitivity(ctx context.Context, p SensitivityParams, e *stages.Env) error {
	data := e.Ports["curves"]
	axes, items := scores.Axes(data), stages.ItemsOf(data)
	of, err := scores.OneAxis("of", p.Of, axes)
	if err != nil {
		return err
	}
	others := scores.Without(axes, of)
	variant := ""
	if p.Variant != paper {
		variant = p.Variant
	}
	table := stages.Table{Title: "Sensitivity to " + of, Keys: others, Numbers: []stages.Column{
		{Name: "sensitivity", Unit: "%", Direction: stages.Higher, Variant: variant,
			Tolerance: distanceTolerance, Digits: 2},
		{Name: "area", Unit: "share", Tolerance: 5e-3, Digits: 4},
		{Name: "n", Unit: items},
		{Name: "undefined", Unit: "curves"},
	}}
	found := &claims.Results{Axes: others, Names: p.names(), Label: e.Label}
	var left []string
	for _, ids := range scores.Places(nil, data, others) {
		var cells []stages.Data
		for _, d := range data {
			if slices.Equal(scores.Pick(d.Coord, others), ids) {
				cells = append(cells, d)
			}
		}
		slices.SortStableFunc(cells, func(a, b stages.Data) int {
			return strings.Compare(scores.IDOn(a.Coord, of), scores.IDOn(b.Coord, of))
		})
		reference := slices.IndexFunc(cells, func(d stages.Data) bool {
			return scores.IDOn(d.Coord, of) == p.Reference
		})
		if reference < 0 {
			return stages.BadField("reference", "%s has no id %q on the axis %s", nameOf(ids), p.Reference,
				of)
		}
		if len(cells) < 2 {
			return stages.BadField("of", "%s has a single id on the axis %s: there is no modification",
				nameOf(ids), of)
		}
		m, err := meanCurves(ctx, cells, p.Response)
		if err != nil {
			return fmt.Errorf("%s: %w", nameOf(ids), err)
		}
		sensitivity, area := m.sensitivity(reference, p.Variant)
		found.Add(ids, sensitivity)
		left = leaves(left, found, ids, m.undefined)
		table.Rows = append(table.Rows, stages.Row{Keys: ids, Numbers: numbers(sensitivity, area,
			float64(m.images), float64(m.undefined))})
	}
	e.Set("table", table.Encode())
	return told(e, p.List, found, table.Numbers[0], claims.Words{Verb: "react", More: "more to modified maps",
		Name: "the distance in percent", Digits: 2}, leftOut(left, items, "curves"))
}

// A modified is the mean curves of one metric, by modification.
type modified struct {
	curves    [][]float64 // NaN without images
	images    int         // with a curve of every modification
	undefined int         // curves
	facts     stages.Facts
}

// meanCurves averages the curves of each cell over the images that have one in every cell. It reads all
// curves twice: first which of them are defined.
func meanCurves(ctx context.Context, cells []stages.Data, response string) (m modified, err error) {
	m.facts = cells[0].Facts
	if m.facts["shares"] != "" {
		return m, fmt.Errorf("the points of the curves lie at unequal distances")
	}
	r := curveReader{response: response}
	defined := map[string]int{} // how many cells have a curve of an image
	for _, d := range cells {
		err := r.each(ctx, d, func(id string, curve []float64) {
			if slices.ContainsFunc(curve, math.IsNaN) {
				m.undefined++
			} else {
				defined[id]++
			}
		})
		if err != nil {
			return m, err
		}
	}
	for _, n := range defined {
		if n == len(cells) {
			m.images++
		}
	}
	for _, d := range cells {
		var sum []float64
		err := r.each(ctx, d, func(id string, curve []float64) {
			if defined[id] < len(cells) {
				return
			}
			if sum == nil {
				sum = make([]float64, len(curve))
			}
			for k, y := range curve {
				sum[k] += y
			}
		})
		if err != nil {
			return m, err
		}
		m.curves = append(m.curves, m.mean(sum))
	}
	return m, nil
}

// A curveReader reads the curves of a response, all of which have as many points.
type curveReader struct {
	response string
	points   int // 0 at first
}

// each calls use with the curves of a cell by image.
func (r *curveReader) each(ctx context.Context, d stages.Data, use func(id string, curve []float64)) error {
	for item, err := range d.All(ctx) {
		if err != nil {
			return err
		}
		curve, err := metric.Response(d.Facts, item.Data, r.response)
		if err == nil && r.points > 0 && len(curve) != r.points {
			err = fmt.Errorf("the curve has %d points, and others %d", len(curve), r.points)
		}
		if err != nil {
			return fmt.Errorf("item %q: %w", item.ID, err)
		}
		r.points = len(curve)
		use(item.ID, curve)
	}
	return nil
}

// mean divides a sum of curves by their number. A difference of curves is stretched to [0,1].
func (m modified) mean(sum []float64) []float64 {
	if sum == nil {
		return []float64{math.NaN(), math.NaN()}
	}
	for k := range sum {
		sum[k] /= float64(m.images)
	}
	if m.facts["order"] == "difference" {
		low, high := slices.Min(sum), slices.Max(sum)
		for k := range sum {
			sum[k] = (sum[k] - low) / (high - low)
		}
	}
	return sum
}

// sensitivity returns the sensitivity in percent, and the area that it is a share of.
func (m modified) sensitivity(reference int, variant string) (percent, area float64) {
	original := m.curves[reference]
	sum := 0.0
	for i, curve := range m.curves {
		if i != reference {
			for k, y := range curve {
				sum += math.Abs(original[k] - y)
			}
		}
	}
	number := len(m.curves) - 1
	if variant == official && m.facts["response"] == "sic" {
		number++
	}
	area = metric.Area(original)
	if m.facts["direction"] == string(stages.Lower) {
		area = 1 - area
	}
	return 100 * sum / float64(len(original)) / float64(number) / area, area
}
