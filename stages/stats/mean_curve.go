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
			e.Put("curves", i, stages.NewTensor(mean, 1, len(mean)).Encode())
			e.Done(1)
		}
		return nil
	},
})

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
