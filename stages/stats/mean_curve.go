package stats

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// MeanCurveParams are the parameters of [MeanCurve].
type MeanCurveParams struct {
	Response string `yaml:"response" doc:"the response; default: the curves' only one"`
	Points   int    `yaml:"points" doc:"how many points at equal distances are kept, interpolated linearly; 0: all" min:"0" max:"100000"`
}

// MeanCurve pools the curves of several cells, such as those of methods.
var MeanCurve = stages.New(stages.Def[MeanCurveParams]{
	Name: "stats/mean-curve",
	Doc: `an image's mean curve of one response over collapsed axes

The curves of all cells along the axes of over, such as methods, become one an image. It
is undefined where one of them is, so that every cell counts with the same images. The
response is called share, as by score/mas-curves, so that curves of several metrics
stand in one figure.`,
	Version:  1,
	Relation: stages.Each,
	Inputs: []stages.Port{{Name: "curves", Type: stages.Curves, Over: true,
		Doc: "the curves, with points at the same shares"}},
	Outputs: []stages.Port{{Name: "curves", Type: stages.Curves, Doc: "their mean"}},
	Facts: func(p MeanCurveParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		name, err := p.response(in["curves"])
		if err != nil {
			return nil, err
		}
		out := stages.Facts{"responses": "share", "response": name}
		if p.Points > 0 && in["curves"]["shares"] != "" {
			return nil, stages.BadField("points", "the points of the curves lie at unequal distances")
		}
		for _, name := range []string{"order", "direction", "shares", "unit", "variant"} {
			if v := in["curves"][name]; v != "" {
				out[name] = v
			}
		}
		return map[string]stages.Facts{"curves": out}, nil
	},
	Run: func(_ context.Context, p MeanCurveParams, e *stages.Env) error {
		name, err := p.response(e.Facts("curves"))
		if err != nil {
			return err
		}
		for i := range e.Len() {
			var mean []float64
			cells := 0
			for m, err := range e.All(i, "curves") {
				if err != nil {
					return err
				}
				curve, err := metric.Response(e.Facts("curves"), m[0].Data, name)
				if err == nil && mean != nil && len(curve) != len(mean) {
					err = fmt.Errorf("curves of %d and of %d points have no mean", len(mean), len(curve))
				}
				if err != nil {
					return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
				}
				if mean == nil {
					mean = make([]float64, len(curve))
				}
				for k, y := range curve {
					mean[k] += y
				}
				cells++
			}
			for k := range mean {
				mean[k] /= float64(cells)
			}
			if mean, err = p.thinned(mean); err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Put("curves", i, stages.NewTensor(mean, 1, len(mean)).Encode())
			e.Done(1)
		}
		return nil
	},
})

// thinned keeps as many points of a curve as parameters say.
func (p MeanCurveParams) thinned(curve []float64) ([]float64, error) {
	switch {
	case p.Points == 0:
		return curve, nil
	case p.Points == 1 || p.Points > len(curve):
		return nil, stages.BadField("points", "points is %d, of curves of %d points", p.Points, len(curve))
	}
	out := make([]float64, p.Points)
	for k := range out {
		at := k * (len(curve) - 1)
		i, rest := at/(p.Points-1), float64(at%(p.Points-1))/float64(p.Points-1)
		out[k] = curve[i]
		if rest > 0 {
			out[k] += float64(rest * (curve[i+1] - curve[i]))
		}
	}
	return out, nil
}

// response returns the name of the response.
func (p MeanCurveParams) response(facts stages.Facts) (string, error) {
	names := strings.Split(facts["responses"], ",")
	switch {
	case p.Response == "" && len(names) == 1:
		return names[0], nil
	case slices.Contains(names, p.Response):
		return p.Response, nil
	case p.Response == "":
		return "", stages.BadField("response", "the curves have several responses: name one of %s",
			strings.Join(names, ", "))
	}
	return "", stages.BadName("response", p.Response, names, "the curves have no response %q, only %s",
		p.Response, strings.Join(names, ", "))
}
