package perturb

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/delaunay"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/webp"
)

// PICEndsParams are the parameters of [PICEnds], which [PIC] passes on.
type PICEndsParams struct {
	stages.Precise
	Random  float64 `yaml:"random" doc:"share of the pixels, drawn once for all images, that is shown from the start" min:"0" max:"1"`
	Variant string  `yaml:"variant" doc:"images of 8-bit pixels, rounded (paper), or of floating point, truncated to 8 bits where their size is measured (official, the code of MAS)" choices:"paper|official"`
	Target  string  `yaml:"target" key:"added" doc:"whose response is recorded, unless targets is wired: the class, as model/predict has it, or an expression of the model's outputs, such as sum(output[3])"`
	Encoder string  `yaml:"encoder" doc:"what measures the information in an image: the size of its lossless WebP form at quality 100, by this release" choices:"libwebp-1.4.0"`
}

// Validate rejects a malformed target.
func (p PICEndsParams) Validate() error { return validTarget(p.Target) }

// PICEnds is the common part of the curves of [PIC] for all maps of an image.
var PICEnds = program.Stage(stages.Def[PICEndsParams]{
	Name: "perturb/pic-ends",
	Doc: `the ends of performance information curves

The response to the image, and to the image of which a few random pixels are shown and
the others interpolated, with the sizes of both: once an image, whatever the number of
maps. The engine inserts this stage in front of perturb/pic. Kapishnikov et al., ICCV
2019.`,
	Definition: stages.Definition{
		Formula: "f and the length in bytes of the image that shows random pixels alone, and of the " +
			"whole image",
		Unit: "a pixel with all its channels",
		Operator: "the shown pixels stay, the others are interpolated linearly within Delaunay's " +
			"triangles",
		Response: "probability, logit and correctness of the explained class, and the size of the " +
			"lossless WebP form",
		Reference:   "the image",
		Aggregation: "none: the two ends of the curves of perturb/pic",
		Randomness:  "the random pixels, by the experiment's seed, the same for all images",
		Undefined:   "never",
	},
	Version:  1,
	Passes:   stages.Passes{Forward: "2"},
	Relation: stages.Each,
	Seeded:   true,
	Device:   true,
	Inputs:   picInputs(),
	Outputs: []stages.Port{
		{Name: "ends", Type: stages.Curves, Doc: "the start and the image; facts: responses, encoder"},
		{Name: "mask", Type: stages.Masks, Doc: "the random pixels, the same for all images"},
	},
	Defaults: picDefaults(),
	Check:    func(p PICEndsParams, wired func(string) bool) error { return checkTarget(p.Target, wired) },
	Facts: func(p PICEndsParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		if err := checkTriangles(in); err != nil {
			return nil, err
		}
		return map[string]stages.Facts{"ends": recorded(p.facts(classResponses+",bytes"), in),
			"mask": {}}, nil
	},
	Run: func(ctx context.Context, p PICEndsParams, e *stages.Env) error {
		n, err := program.Load(e)
		if err != nil {
			return err
		}
		mask := make([]uint8, n.Height*n.Width)
		for _, i := range e.SharedRand("mask").Perm(len(mask))[:int(p.Random*float64(len(mask)))] {
			mask[i] = 1
		}
		payload := stages.NewTensor(mask, n.Height, n.Width).Encode()
		err = p.run(ctx, e, n, 2, func(int) ([][]bool, error) {
			return [][]bool{shown(mask, nil, 0), shown(mask, nil, len(mask))}, nil
		}, func(i int, curve []response, lengths []float64) error {
			e.Put("ends", i, encodeEnds(e, curve, lengths))
			e.Put("mask", i, payload)
			return nil
		})
		return err
	},
})

// picDefaults are the default parameters of images partly shown. Another release of libwebp is another
// encoder, in keys and in published results.
func picDefaults() PICEndsParams {
	return PICEndsParams{Random: 0.01, Variant: "paper", Encoder: "libwebp-" + webp.Version,
		Target: program.PredictedClass}
}

// picInputs are the ports of the stages of performance information curves.
func picInputs(more ...stages.Port) []stages.Port {
	return append([]stages.Port{
		program.ModelPort("the classifier"),
		{Name: "images", Type: stages.Images, Doc: "the images, of the model's size"},
		{Name: "targets", Type: stages.Targets,
			Doc:      "the class whose response is recorded; default: the prediction for the original image",
			Optional: true, Else: "model/predict"},
		{Name: "labels", Type: stages.Labels, Doc: "the class for correctness; default: the target",
			Optional: true},
	}, more...)
}

// checkTriangles rejects models whose images have no triangles of pixels, or too large a side.
func checkTriangles(in map[string]stages.Facts) error {
	h, w, err := sizeOf(in)
	if err == nil && (min(h, w) < 2 || max(h, w) > delaunay.MaxSide) {
		err = fmt.Errorf("images of %d×%d pixels can't be triangulated: their sides must be from 2 to %d", h,
			w, delaunay.MaxSide)
	}
	return err
}

// facts returns the facts of curves over information.
func (p PICEndsParams) facts(responses string) stages.Facts {
	f := stages.Facts{"responses": responses, "order": "information",
		"direction": string(stages.Higher), "encoder": p.Encoder}
	if p.Variant != "paper" {
		f["variant"] = p.Variant
	}
	return f
}

// encodeEnds returns the payload of the port ends.
func encodeEnds(e *stages.Env, curve []response, lengths []float64) []byte {
	values := append(rows(e, curve), lengths...)
	return stages.NewTensor(values, len(values)/2, 2).Encode()
}

// decodeEnds reads the payload that encodeEnds wrote.
func decodeEnds(e *stages.Env, payload []byte) (curve [2]response, lengths [2]float64, err error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return curve, lengths, err
	}
	v := t.Float64s()
	n := 2 * rowsOf(e)
	if len(v) != n+2 {
		return curve, lengths, fmt.Errorf("ends of shape %v aren't those of perturb/pic-ends", t.Shape)
	}
	for k := range 2 {
		curve[k], lengths[k] = response{probability: v[k]}, v[n+k]
		if n > 2 {
			curve[k].logit, curve[k].correct = v[2+k], v[4+k]
		}
	}
	return curve, lengths, nil
}
