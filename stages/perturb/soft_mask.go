package perturb

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/program"
)

// SoftMaskParams are the parameters of [SoftMask].
type SoftMaskParams struct {
	stages.Precise
	Substrate string  `yaml:"substrate" doc:"what shows where the map has its least value: zero after normalisation, the blurred image, black pixels, the mean over channels of the model's means as a normalised value, uniform noise in [0,1) as normalised values, the mean of each channel of the image, or the images on the port substrates" choices:"blur|zero|black|mean|random|channel-mean|images"`
	Kernel    int     `yaml:"kernel" doc:"blur: side of the kernel in pixels, odd" min:"1" max:"1023"`
	Sigma     float64 `yaml:"sigma" doc:"blur: standard deviation of the kernel in pixels" min:"0.01" max:"1000"`
	Target    string  `yaml:"target" key:"added" doc:"whose response is recorded, unless targets is wired: the class, as model/predict has it, or an expression of the model's outputs, such as sum(output[3])"`
	Values    string  `yaml:"values" doc:"a pixel's relevance before it is scaled to [0,1]: the magnitude of the sum over channels, the signed sum, or its positive part" choices:"magnitude|signed|positive"`
}

// Validate rejects a kernel without a centre, and a malformed target.
func (p SoftMaskParams) Validate() error { return p.blend().Validate() }

// blend returns the parameters of the substrate.
func (p SoftMaskParams) blend() Params {
	return Params{Substrate: p.Substrate, Kernel: p.Kernel, Sigma: p.Sigma, Unit: "pixel", Target: p.Target}
}

// SoftMask makes the explanation maps of Chattopadhay et al., "Grad-CAM++", WACV 2018: the image times its
// map. [Masked] hides whole elements, this stage hides every pixel in part.
var SoftMask = program.Stage(stages.Def[SoftMaskParams]{
	Name: "perturb/soft-mask",
	Doc: `the image times its map, and the model's response to it

Every pixel is shown in proportion to its relevance: m·x + (1 − m)·s, where m is
the map scaled to [0,1] by its least and its greatest value, x the image and s the
substrate. The image that a method explains again, for score/adcc, is on the port images;
it needs no store (store: none). A constant map has no mask: its image is left as it is,
its response undefined. Chattopadhay, Sarkar, Howlader and Balasubramanian, "Grad-CAM++",
WACV 2018, call it the explanation map.`,
	Definition: stages.Definition{
		Formula:     "f(x) and f(m ⊙ x + (1 − m) ⊙ s), m = (v − min v)/(max v − min v), v = |a| by default",
		Unit:        "a pixel, in part",
		Operator:    "blending with the substrate s, by default zero after normalisation",
		Response:    "probability, logit and correctness of the target",
		Reference:   "the image itself",
		Aggregation: "none: the two responses are the curve's points",
		Randomness:  "substrate random alone, by the experiment's seed and the image",
		Undefined:   "the second point, for a map that is constant or has a value that isn't a number",
	},
	Version:  1,
	Relation: stages.Each,
	Seeded:   true,
	Device:   true,
	Passes:   stages.Passes{Forward: "1"},
	Inputs: []stages.Port{
		program.ModelPort("the classifier"),
		{Name: "images", Type: stages.Images, Doc: "the images, of the model's size"},
		{Name: "maps", Type: stages.Maps, Doc: "attribution maps, of the images' size"},
		{Name: "targets", Type: stages.Targets, Optional: true, Else: "model/predict",
			Doc: "the class whose response is recorded; default: the prediction for the original image"},
		{Name: "labels", Type: stages.Labels, Optional: true,
			Doc: "the class for correctness; default: the target"},
		{Name: "substrates", Type: stages.Images, Optional: true,
			Doc: "substrate images: what shows where a pixel is hidden"},
		{Name: "whole", Type: stages.Curves, Optional: true, Else: "perturb/response", Own: true,
			Doc: "the responses to the images as they are, which all methods share"},
	},
	Outputs: []stages.Port{
		{Name: "curves", Type: stages.Curves,
			Doc: "probability, logit and correctness of the class for the image and for the masked image"},
		{Name: "images", Type: stages.Images, Doc: "the masked images, f32"},
		{Name: "masks", Type: stages.Maps, Doc: "the masks [H,W], from 0 to 1"},
	},
	Variants: []stages.Variant{{
		Item: "what is scaled to [0,1]", Default: "values: magnitude",
		Differs: "Grad-CAM and its kin have no negative values; torch-cam and pytorch-grad-cam scale " +
			"signed maps (values: signed), in which what speaks against the class is hidden most; xplique " +
			"takes magnitudes",
		Golden: "masked_input",
	}},
	Defaults: SoftMaskParams{Substrate: "zero", Kernel: 11, Sigma: 11, Values: metric.Magnitude,
		Target: program.PredictedClass},
	Check: func(p SoftMaskParams, wired func(string) bool) error {
		if err := checkTarget(p.Target, wired); err != nil {
			return err
		}
		return p.blend().check(func(port string) bool { return port == "substrates" && wired(port) })
	},
	Facts: func(p SoftMaskParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		return map[string]stages.Facts{
			"curves": recorded(stages.Facts{"responses": classResponses, "order": "masked",
				"direction": string(stages.None), "values": p.Values}, in),
			"images": imageFacts(in["images"]),
		}, nil
	},
	Run: func(ctx context.Context, p SoftMaskParams, e *stages.Env) error { return p.run(ctx, e) },
})

func (p SoftMaskParams) run(ctx context.Context, e *stages.Env) error {
	n, err := program.Load(e)
	if err != nil {
		return err
	}
	f, err := n.Forward(ctx, e.Slot, n.Fit(e.Len(), e.Batch))
	if err != nil {
		return err
	}
	s := newSubstrate(p.blend(), n)
	c := newCollector(e, f, 1)
	c.put = func(i int, curve []response) error {
		whole, err := wholeOf(e, e.In("whole", i))
		if err != nil {
			return fmt.Errorf("item %q: port whole: %w", e.Calls[i].ID, err)
		}
		e.Put("curves", i, encodeCurve(e, append([]response{whole}, curve...)))
		return nil
	}
	for i := range e.Len() {
		by, err := responderOf(e, i, n)
		var shown [][]float32
		if err == nil {
			by.warn(e, i)
			shown, err = p.masked(e, i, n, s)
		}
		if err == nil {
			err = c.add(ctx, i, by, shown)
		}
		if err != nil {
			return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
		}
	}
	return c.flush(ctx)
}

// wholeOf returns the first point of a curve: the response to an image as it is.
func wholeOf(e *stages.Env, payload []byte) (r response, err error) {
	t, err := stages.DecodeTensor(payload)
	if err == nil && (len(t.Shape) != 2 || t.Shape[0] < rowsOf(e) || t.Shape[1] < 1) {
		err = fmt.Errorf("a curve of shape %v has no response to the image", t.Shape)
	}
	if err != nil {
		return r, err
	}
	v, points := t.Float64s(), t.Shape[1]
	if rowsOf(e) == 1 {
		return response{probability: v[0]}, nil
	}
	return response{v[0], v[points], v[2*points]}, nil
}

// masked puts the masked image of item i and its mask, and returns the normalised image, none for a map that
// has no mask.
func (p SoftMaskParams) masked(e *stages.Env, i int, n *program.Net, s substrate) ([][]float32, error) {
	image, err := stages.DecodeTensor(e.In("images", i))
	if err != nil {
		return nil, err
	}
	x, hidden := make([]float32, n.Size()), make([]float32, n.Size())
	if err := n.Normalise(image, x); err != nil {
		return nil, err
	}
	t, err := stages.DecodeTensor(e.In("maps", i))
	if err != nil {
		return nil, err
	}
	m, height, width, err := metric.Values(t, p.Values)
	switch {
	case err != nil:
		return nil, err
	case height != n.Height || width != n.Width:
		return nil, fmt.Errorf("a map of %d×%d pixels "+
			"doesn't match the model's %d×%d", height, width, n.Height,
			n.Width)
	}
	if err := s.fill(e, i, x, hidden); err != nil {
		return nil, err
	}
	values := image.Float32s()
	if image.DType == stages.U8 {
		for k := range values {
			values[k] /= 255
		}
	}
	defined := metric.MinMax(m)
	e.Put("masks", i, stages.NewTensor(m, height, width).Encode())
	pixels := height * width
	for k := 0; k < len(values) && defined; k++ {
		c := min(k/pixels, n.Channels-1) // a grey model's one channel is the substrate of all three
		share := m[k%pixels]
		values[k] = float32(float64(share*float64(values[k])) +
			float64((1-share)*pixelOf(n, hidden[c*pixels+k%pixels], c)))
	}
	blended := stages.NewTensor(values, image.Shape...)
	e.Put("images", i, blended.Encode())
	if !defined {
		e.WarnItem(i, "its map is constant or has values that are not numbers, and so has no mask")
		return nil, nil
	}
	err = n.Normalise(blended, x)
	return [][]float32{x}, err
}

// pixelOf returns the pixel value that the net normalises to v in channel c.
func pixelOf(n *program.Net, v float32, c int) float64 {
	if v == 0 {
		return float64(zero(n, c))
	}
	return (float64(v)*n.Std[c] + n.Mean[c]) / n.Scale
}
