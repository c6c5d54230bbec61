package perturb

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// A direction defines how a curve is traced.
type direction struct {
	name       string           // the fact "order"
	better     stages.Direction // which area under the curve is better
	insert     bool             // from the substrate to the image rather than the reverse
	leastFirst bool             // the least relevant units first
	drawn      bool             // the units in random order
}

var (
	insertion = direction{name: "insertion", better: stages.Higher, insert: true}
	deletion  = direction{name: "deletion", better: stages.Lower}
	morf      = direction{name: "morf", better: stages.Lower}
	lerf      = direction{name: "lerf", better: stages.Higher, leastFirst: true}
	drawn     = direction{name: "random", better: stages.None, drawn: true}
)

// removal returns the direction in which an order removes units.
func removal(order string) direction {
	switch order {
	case "lerf":
		return lerf
	case "random":
		return drawn
	}
	return morf
}

// facts returns the facts that all curves have.
func (d direction) facts() stages.Facts {
	return stages.Facts{
		"responses": classResponses,
		"order":     d.name,
		"direction": string(d.better),
	}
}

// ranks are the places of units in an order.
type ranks struct {
	of    []float32 // by pixel, the place of its unit: 0 comes first
	units int
}

// reversed returns the places in the reverse order.
func (r ranks) reversed() []float32 {
	out := make([]float32, len(r.of))
	for i, place := range r.of {
		out[i] = float32(r.units-1) - place
	}
	return out
}

// ranksOf decodes a rank map. It returns ranks without units if the ranked map has no order.
func ranksOf(payload []byte, height, width int, pixels bool) (r ranks, err error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return r, err
	}
	if t.DType == stages.U32 && slices.Equal(t.Shape, []int{0, 0}) {
		return r, nil
	}
	if t.DType != stages.U32 || !slices.Equal(t.Shape, []int{height, width}) {
		return r, fmt.Errorf("a map of %v pixels doesn't match the model's %d×%d", t.Shape, height, width)
	}
	r = ranks{t.Float32s(), height * width}
	if !pixels {
		r.units = int(slices.Max(r.of)) + 1
	}
	return r, nil
}

// randomRanks returns a random order of the units of item i, the same for all maps. It has no units if the
// item has none.
func (p Params) randomRanks(e *stages.Env, i, height, width int) (r ranks, err error) {
	draw := e.Rand("order", i)
	places := func(n int) []float32 {
		out := make([]float32, n)
		for k, place := range draw.Perm(n) {
			out[k] = float32(place)
		}
		return out
	}
	if p.Unit == "pixel" {
		return ranks{places(height * width), height * width}, nil
	}
	u, err := p.unitsOf(e, i, height, width)
	if err != nil {
		return r, err
	}
	return ranks{metric.Spread(u, places(u.Count)), u.Count}, nil
}

// unitsOf returns the units of item i.
func (p Params) unitsOf(e *stages.Env, i, height, width int) (metric.Units, error) {
	switch p.Unit {
	case "region":
		return metric.Regions(height, width, p.Region), nil
	case "segment":
		u, err := metric.Segments(e.In("segments", i), height, width)
		if err != nil {
			err = fmt.Errorf("port segments: %w", err)
		}
		return u, err
	}
	return metric.Regions(height, width, 1), nil
}
