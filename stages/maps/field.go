package maps

import (
	"context"
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// A field is a map in memory: channels of pixels.
type field struct {
	values                  []float64
	channels, height, width int
	flat                    bool // it came as [H,W]
}

func (f field) pixels() int { return f.height * f.width }

// channel returns the values of channel c.
func (f field) channel(c int) []float64 { return f.values[c*f.pixels() : (c+1)*f.pixels()] }

// fieldOf reads a map of shape [H,W] or [C,H,W].
func fieldOf(m stages.Tensor) (field, error) {
	switch s := m.Shape; len(s) {
	case 2:
		return field{m.Float64s(), 1, s[0], s[1], true}, nil
	case 3:
		return field{m.Float64s(), s[0], s[1], s[2], false}, nil
	}
	return field{}, fmt.Errorf("a map of shape %v is neither [H,W] nor [C,H,W]", m.Shape)
}

func (f field) shape() []int {
	if f.flat {
		return []int{f.height, f.width}
	}
	return []int{f.channels, f.height, f.width}
}

// encode returns the payload of f in single precision, or in double.
func (f field) encode(d stages.DType) []byte {
	if d == stages.F64 {
		return stages.NewTensor(f.values, f.shape()...).Encode()
	}
	single := make([]float32, len(f.values))
	for i, v := range f.values {
		single[i] = float32(v)
	}
	return stages.NewTensor(single, f.shape()...).Encode()
}

// input returns the ports of a stage that takes maps.
func input() []stages.Port {
	return []stages.Port{{Name: "maps", Type: stages.Maps, Doc: "attribution maps"}}
}

// output returns the ports of a stage that makes maps of maps.
func output(doc string) []stages.Port {
	return []stages.Port{{Name: "maps", Type: stages.Maps, Doc: doc}}
}

// each changes the map of every item. precision is the type of the result, 0 for that of the map.
func each(ctx context.Context, e *stages.Env, precision stages.DType,
	change func(i int, f field) (field, error)) error {
	for i := range e.Len() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		m, err := stages.DecodeTensor(e.In("maps", i))
		var f field
		if err == nil {
			f, err = fieldOf(m)
		}
		if err == nil {
			f, err = change(i, f)
		}
		if err != nil {
			return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
		}
		d := precision
		if d == 0 {
			d = m.DType
		}
		e.Put("maps", i, f.encode(d))
		e.Done(1)
	}
	return nil
}

// reduced makes one channel of all.
func (f field) reduced(how metric.Reduction) field {
	return field{how.Of(f.values, f.pixels()), 1, f.height, f.width, true}
}

// largest returns the number that amounts are a share of: the largest value of the map, its largest
// magnitude, or that of the sum over channels; 1 for absolute amounts.
func (f field) largest(of string) float64 {
	switch of {
	case "absolute":
		return 1
	case "max-abs":
		f = f.reduced(metric.MaxAbs)
	case "max-abs-sum":
		f = f.reduced(metric.AbsSum)
	}
	most := math.Inf(-1)
	for _, v := range f.values {
		most = math.Max(most, v)
	}
	return most
}
