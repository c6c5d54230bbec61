package score

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// LocalisationParams are the parameters that the metrics of masks have in common.
type LocalisationParams struct {
	Values string `yaml:"values" doc:"the relevance that counts, after summing channels: its positive part, or its magnitude" choices:"positive|magnitude"`
}

// RankingParams are the parameters that the metrics of masks have in common which read the order of pixels,
// signed by default.
type RankingParams struct {
	Values string `yaml:"values" doc:"what orders the pixels, after summing channels: the signed value, its positive part, or its magnitude" choices:"signed|positive|magnitude"`
}

// localisation declares a metric of relevance on an object. of returns the score of one map and its chance
// level: the mean score of maps whose pixels are in random order. Pixels that don't count aren't among the
// map's values. Both are undefined where all or none of the others are on the
// object, which reach, if it isn't nil, enlarges by so many pixels.
func localisation[P any](d stages.Def[P], m stages.Measure, values func(P) string, reach func(P) int,
	of func(p P, values []float64, mask []uint8) (score, chance float64)) stages.Stage {
	d.Relation = stages.Each
	d.Outputs = []stages.Port{
		{Name: "scores", Type: stages.Scores, Doc: "the score, in [0,1]"},
		{Name: "chance", Type: stages.Scores, Doc: "its mean over maps whose pixels are in random order"},
	}
	d.Facts = func(P, map[string]stages.Facts) (map[string]stages.Facts, error) {
		chance := stages.Measure{Unit: m.Unit, Direction: stages.None, High: 1, Tolerance: 1e-4,
			ItemTolerance: kinkJump}
		return map[string]stages.Facts{"scores": m.Facts(nil), "chance": chance.Facts(nil)}, nil
	}
	d.Run = eachObject(values, reach, func(p P, v []float64, mask []uint8) []float64 {
		x, chance := of(p, v, mask)
		return []float64{x, chance}
	})
	return stages.New(d)
}

// eachObject returns the function that runs a metric of relevance on an object. of returns the numbers of one
// map in the order of the output ports, the score first: where it is undefined the others are too, so that
// all have a mean over the same images. values, reach and the arguments of of are those of localisation.
func eachObject[P any](values func(P) string, reach func(P) int,
	of func(p P, values []float64, mask []uint8) []float64) func(context.Context, P, *stages.Env) error {
	return func(_ context.Context, p P, e *stages.Env) error {
		for i := range e.Len() {
			v, mask, height, width, err := relevanceAndObject(e, i, values(p))
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			if reach != nil {
				mask = metric.Grown(mask, height, width, reach(p))
			}
			numbers := make([]float64, len(e.Stage.Outputs))
			numbers[0] = math.NaN()
			if counted, mask := metric.Counted(v, mask); metric.Decides(mask) && metric.Defined(v) {
				numbers = of(p, counted, mask)
			}
			for k, port := range e.Stage.Outputs {
				if math.IsNaN(numbers[0]) {
					numbers[k] = numbers[0]
				}
				e.Put(port.Name, i, stages.Scalar(numbers[k]))
			}
			e.Done(1)
		}
		return nil
	}
}

// maskOrBoxes are the inputs of a metric that takes the object's mask, or boxes around it.
func maskOrBoxes() []stages.Port {
	return []stages.Port{
		{Name: "maps", Type: stages.Maps, Doc: "attribution maps"},
		{Name: "masks", Type: stages.Masks, Doc: "1 on the object", Optional: true},
		{Name: "boxes", Type: stages.Boxes, Doc: "boxes around the object, in place of masks",
			Optional: true},
	}
}

// oneObject rejects a metric that has neither masks nor boxes, or both.
func oneObject[P any](_ P, wired func(string) bool) error {
	switch masks, boxes := wired("masks"), wired("boxes"); {
	case masks && boxes:
		return errors.New("masks and boxes are both wired: the object is one or the other")
	case !masks && !boxes:
		return errors.New("where the object is isn't known: wire masks or boxes")
	}
	return nil
}

// relevanceAndObject returns the values of a map and the mask of its object, pixel by pixel.
func relevanceAndObject(e *stages.Env, i int, how string) (v []float64, mask []uint8, height, width int,
	err error) {
	t, err := stages.DecodeTensor(e.In("maps", i))
	if err != nil {
		return nil, nil, 0, 0, err
	}
	if v, height, width, err = metric.Values(t, how); err != nil {
		return nil, nil, 0, 0, err
	}
	if len(v) == 0 {
		return nil, nil, 0, 0, errors.New("a map without a pixel has no relevance to locate")
	}
	if hasPort(e.Stage, "masks") && e.Wired("masks") {
		mask, err = maskOf(e.In("masks", i), height, width)
	} else {
		mask, err = boxesOf(e.In("boxes", i), height, width)
	}
	return v, mask, height, width, err
}

func hasPort(s *stages.Stage, name string) bool {
	return slices.ContainsFunc(s.Inputs, func(p stages.Port) bool { return p.Name == name })
}

// maskOf decodes a mask of the size of a map.
func maskOf(payload []byte, height, width int) ([]uint8, error) {
	mask, err := stages.DecodeTensor(payload)
	if err != nil {
		return nil, err
	}
	if mask.DType != stages.U8 || !slices.Equal(mask.Shape, []int{height, width}) {
		return nil, fmt.Errorf("a mask of %s %v doesn't match a map of %d×%d pixels", mask.DType, mask.Shape,
			height, width)
	}
	return mask.Raw, nil
}

// boxesOf decodes boxes and returns a mask of the pixels whose centre is inside one.
func boxesOf(payload []byte, height, width int) ([]uint8, error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return nil, err
	}
	if len(t.Shape) != 2 || t.Shape[1] != 4 {
		return nil, fmt.Errorf("boxes of shape %v: four edges a box are needed", t.Shape)
	}
	edges := t.Float64s()
	for _, x := range edges {
		if math.IsNaN(x) {
			return nil, errors.New("an edge of a box is NaN")
		}
	}
	return metric.BoxMask(edges, height, width), nil
}

// share returns the object's share of the image, NaN for an empty mask.
func share(mask []uint8) float64 {
	n := metric.MaskArea(mask)
	if n == 0 {
		return math.NaN()
	}
	return float64(n) / float64(len(mask))
}

// located completes the definition of a metric of relevance on an object.
func located(d stages.Definition) stages.Definition {
	d.Unit, d.Operator, d.Randomness = "a pixel, or a token", "none", "none"
	d.Response = "none besides the map"
	d.Undefined = cmp.Or(d.Undefined, "where the object has no pixel or all") + ", for a map without " +
		"relevance, and for one with a value that isn't finite"
	return d
}
