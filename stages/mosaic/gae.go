package mosaic

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// GAEParams are the parameters of [GAE].
type GAEParams struct {
	Count    int    `yaml:"count" doc:"maximum number of mosaics; 0: as many as the images allow" min:"0" max:"1000000"`
	Order    string `yaml:"order" doc:"the order in which images become mosaics, four at a time: random, or that of the data set" choices:"random|given"`
	Positive string `yaml:"positive" doc:"the quadrant of the positive image: random, drawn by the softmax of the logits that the model gives the mosaic at the four classes (likelihood), or a fixed one" choices:"random|likelihood|top-left|top-right|bottom-left|bottom-right"`
	Variant  string `yaml:"variant" doc:"paper; or as the code: negatives by labels instead of predictions, the middle counted as positive, and images of other mosaics where batch is above 4 (official)" choices:"paper|official"`
	Batch    int    `yaml:"batch" doc:"official: images in a batch of the code, a multiple of 4" min:"4" max:"64"`
}

// Validate refuses batches that don't make whole mosaics, and batches without a meaning.
func (p GAEParams) Validate() error {
	if p.Batch%4 != 0 {
		return stages.BadField("batch", "batch is %d: mosaics take four images each", p.Batch)
	}
	if p.Batch != 4 && p.Variant != official {
		return stages.BadField("batch",
			"batch changes which image a score belongs to, in variant official only")
	}
	return nil
}

const official = "official"

// quadrants are the fixed values of positive, in the order of a mosaic's images.
var quadrants = []string{"top-left", "top-right", "bottom-left", "bottom-right"}

// GAE builds the mosaics of Global Attribution Evaluation, after Vukadin, Afrić, Šilić and Delač, 2024,
// section 3.2. A mosaic has four images of H×W at half their size, and the size H×W. Its item, mosaic-0003,
// has the positive image's origin.
//
// The scoring map [H,W] is 1 in the positive quadrant and 2·s[c_n]/s[c_p] − 1 in the others: s are the
// model's probabilities for the positive image, c_p its class, c_n the class of the quadrant's image. So
// relevance in a quadrant isn't held against a method where the positive image has that class too.
var GAE = program.Stage(stages.Def[GAEParams]{
	Name: "mosaic/gae",
	Doc: `mosaics of a positive image and three others, for score/gae

Each mosaic has four images at half their size, and explains the class that the model
predicts for one of them, the positive image. Every image is used at most once. The
scoring map says what relevance at a place is worth: 1 in the positive quadrant, and
elsewhere between −1 and 1, more if the model sees that quadrant's class in the positive
image too.

  guess:   {uses: model/predict, in: {model: model, images: images}}
  mosaics: {uses: mosaic/gae, in: {model: model, images: images, targets: guess.targets}}
  mosaic-maps: {uses: "${method}", in: {model: model, images: mosaics, targets: mosaics.targets}}

Vukadin et al., "Advancing Attribution-Based Neural Network Explainability through
Relative Absolute Magnitude Layer-Wise Relevance Propagation", 2024, section 3.2.`,
	Version:  1,
	Passes:   stages.Passes{Forward: "≤ 2"},
	Relation: stages.Whole,
	Seeded:   true,
	Device:   true,
	Inputs: []stages.Port{
		{Name: "model", Type: stages.Model, Doc: "the classifier"},
		{Name: "images", Type: stages.Images, Doc: "images of the model's size"},
		{Name: "targets", Type: stages.Targets, Doc: "their classes as the model predicts them"},
		{Name: "labels", Type: stages.Labels, Doc: "their labels, for variant official", Optional: true},
	},
	Outputs: []stages.Port{
		{Name: "images", Type: stages.Images, Doc: "the mosaic"},
		{Name: "positives", Type: stages.Images, Doc: "the positive image, whole"},
		{Name: "targets", Type: stages.Targets, Doc: "the positive image's class"},
		{Name: "scoring", Type: stages.Maps, Doc: "what relevance is worth at each place of the mosaic"},
	},
	Defaults: GAEParams{Order: "random", Positive: "random", Variant: "paper", Batch: 4},
	Variants: []stages.Variant{{
		Item: "positive image, negatives' classes, the middle", Default: "paper",
		Differs: "the code draws the positive image by likelihood, takes the classes of negatives from the " +
			"data set's labels, counts the middle 2×2 pixels as positive, and in batches of more than one " +
			"mosaic takes the images of one mosaic and the classes and scores of others",
		Golden: "gae",
	}},
	Check: func(p GAEParams, wired func(string) bool) error {
		if p.Variant == official && !wired("labels") {
			return stages.BadField("variant", "the official code takes the classes of negatives from "+
				"labels: wire labels, or take variant paper")
		}
		return nil
	},
	Facts: func(_ GAEParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		f := stages.Facts{"height": in["model"]["height"], "width": in["model"]["width"]}
		return map[string]stages.Facts{"images": f, "positives": f}, nil
	},
	Run:   runGAE,
	Hooks: func(p GAEParams) stages.Hooks { return stages.Hooks{Most: p.most} },
})

// most returns how many mosaics there are of so many images.
func (p GAEParams) most(in map[string]stages.Amount) int {
	mosaics := in["images"].Items / p.Batch * (p.Batch / 4)
	if p.Count > 0 {
		return min(mosaics, p.Count)
	}
	return mosaics
}

func runGAE(ctx context.Context, p GAEParams, e *stages.Env) error {
	n, err := program.LoadClasses(e)
	if err != nil {
		return err
	}
	images := &e.Ports["images"][0]
	pool := make([]int, images.Items.Len())
	for i := range pool {
		pool[i] = i
	}
	draw := e.SharedRand("mosaics")
	if p.Order == "random" {
		draw.Shuffle(len(pool), func(i, k int) { pool[i], pool[k] = pool[k], pool[i] })
	}
	mosaics := p.most(map[string]stages.Amount{"images": {Items: len(pool)}})
	if mosaics < p.Count {
		e.Warn("%d mosaics instead of %d: the images are used up", mosaics, p.Count)
	}
	if mosaics == 0 {
		return fmt.Errorf("too few images for a mosaic: there are %d, and it needs %d", len(pool), p.Batch)
	}
	forward, err := n.Forward(ctx, e.Slot, n.Fit(p.Batch/4, e.Batch))
	if err != nil {
		return err
	}
	b := gaeBatch{GAEParams: p, net: n, forward: forward, rng: draw}
	if b.predicted, err = byItem(ctx, e.Ports["targets"][0]); err != nil {
		return fmt.Errorf("port targets: %w", err)
	}
	if b.negatives = b.predicted; p.Variant == official {
		if b.negatives, err = byItem(ctx, e.Ports["labels"][0]); err != nil {
			return fmt.Errorf("port labels: %w", err)
		}
	}
	for built := 0; built < mosaics; {
		if err := b.load(images, pool[built*4:built*4+p.Batch]); err != nil {
			return err
		}
		all, err := b.mosaics(ctx)
		if err != nil {
			return err
		}
		for _, m := range all[:min(len(all), mosaics-built)] {
			id := fmt.Sprintf("mosaic-%04d", built)
			origin := b.images[m.positive].Origin
			e.Emit("images", id, origin, m.image.Encode())
			e.Emit("positives", id, origin, b.images[m.positive].Encode())
			e.Emit("targets", id, origin,
				stages.NewTensor([]int64{b.predicted[b.images[m.positive].ID]}, 1).Encode())
			e.Emit("scoring", id, origin, m.scoring.Encode())
			e.Done(1)
			built++
		}
	}
	return nil
}

// A gaeBatch builds the mosaics of a batch of images.
type gaeBatch struct {
	GAEParams
	net                  *program.Net
	forward              program.Forward
	rng                  *rand.Rand
	predicted, negatives map[string]int64 // classes by image
	images               []gaeImage
}

// A gaeImage is an image with its item.
type gaeImage struct {
	stages.Item
	stages.Tensor
}

// A gaeMosaic is a mosaic, its scoring map, and its positive image's number in the batch.
type gaeMosaic struct {
	image, scoring stages.Tensor
	positive       int
}

// load reads the images of a batch.
func (b *gaeBatch) load(images *stages.Data, members []int) error {
	b.images = b.images[:0]
	for _, k := range members {
		item, err := images.Items.At(k)
		if err != nil {
			return err
		}
		payload, err := images.Load(k)
		if err != nil {
			return err
		}
		t, err := stages.DecodeTensor(payload)
		if err == nil && (!slices.Equal(t.Shape, []int{3, b.net.Height, b.net.Width}) ||
			len(b.images) > 0 && t.DType != b.images[0].DType) {
			err = fmt.Errorf("an image of type %s and shape %v doesn't fit a mosaic of %d×%d pixels",
				t.DType, t.Shape, b.net.Height, b.net.Width)
		}
		if err == nil {
			err = b.checkClass("targets", b.predicted, item.ID)
		}
		if err == nil {
			err = b.checkClass("labels", b.negatives, item.ID)
		}
		if err != nil {
			return fmt.Errorf("item %q: %w", item.ID, err)
		}
		b.images = append(b.images, gaeImage{item, t})
	}
	return nil
}

// checkClass refuses an image without one of the model's classes.
func (b *gaeBatch) checkClass(port string, classes map[string]int64, id string) error {
	if class, ok := classes[id]; !ok || class < 0 || class >= int64(b.net.Classes) {
		return fmt.Errorf("port %s has no class of the model's %d for it", port, b.net.Classes)
	}
	return nil
}

// mosaics builds the mosaics of the batch. The code splits a batch into quarters and takes an image of each,
// but the classes of four images in a row: with one mosaic in the batch, these are the same.
func (b *gaeBatch) mosaics(ctx context.Context) ([]gaeMosaic, error) {
	all := make([]gaeMosaic, len(b.images)/4)
	mosaics := make([]stages.Tensor, len(all))
	for m := range all {
		all[m].image = b.halves(m)
		mosaics[m] = all[m].image
	}
	if err := b.choose(ctx, all, mosaics); err != nil {
		return nil, err
	}
	positives := make([]stages.Tensor, len(all))
	for m := range all {
		positives[m] = b.images[all[m].positive].Tensor
	}
	worth := make([]float64, len(b.images)) // of relevance in each image's quadrant
	err := b.classify(ctx, positives, func(m int, row []float32) {
		probability := func(k int) float64 {
			return b.net.Probability(row, program.Target{Class: int(b.negatives[b.images[k].ID]), Minus: -1})
		}
		for k := 4 * m; k < 4*m+4; k++ {
			worth[k] = 2*probability(k)/probability(all[m].positive) - 1
		}
	})
	for m := range all {
		all[m].scoring = b.scoring(m, worth)
	}
	return all, err
}

// choose sets the positive image of each mosaic.
func (b *gaeBatch) choose(ctx context.Context, all []gaeMosaic, mosaics []stages.Tensor) error {
	fixed := slices.Index(quadrants, b.Positive)
	for m := range all {
		if all[m].positive = 4*m + max(fixed, 0); b.Positive == "random" {
			all[m].positive = 4*m + b.rng.IntN(4)
		}
	}
	if b.Positive != "likelihood" {
		return nil
	}
	return b.classify(ctx, mosaics, func(m int, row []float32) {
		var logits, p [4]float64
		for k := range logits {
			class := int(b.predicted[b.images[4*m+k].ID])
			logits[k] = b.net.Logit(row, program.Target{Class: class, Minus: -1})
		}
		most, sum := slices.Max(logits[:]), 0.0
		for k, l := range logits {
			p[k] = math.Exp(l - most)
			sum += p[k]
		}
		k, u := 0, b.rng.Float64()*sum
		for ; k < 3 && u >= p[k]; k++ {
			u -= p[k]
		}
		all[m].positive = 4*m + k
	})
}

// classify calls use with the model's answer to each image.
func (b *gaeBatch) classify(ctx context.Context, images []stages.Tensor,
	use func(k int, row []float32)) error {
	size := b.forward.Batch
	for from := 0; from < len(images); from += size {
		to := min(from+size, len(images))
		for k := from; k < to; k++ {
			if err := b.net.Normalise(images[k], b.forward.Image(k-from)); err != nil {
				return err
			}
		}
		if err := b.forward.Run(ctx); err != nil {
			return err
		}
		for k := from; k < to; k++ {
			use(k, b.forward.Row(k-from))
		}
	}
	return nil
}

// halves returns mosaic m of the batch: every quadrant is an image at half its size, by the nearest pixel.
func (b *gaeBatch) halves(m int) stages.Tensor {
	out := stages.Tensor{DType: b.images[0].DType, Shape: b.images[0].Shape,
		Raw: make([]byte, len(b.images[0].Raw))}
	h, w, size := out.Shape[1], out.Shape[2], out.DType.Size()
	for q := range 4 {
		from := b.images[q*len(b.images)/4+m].Raw
		top, left, bottom, right := quadrant(q, h, w)
		for c := range out.Shape[0] {
			for y := top; y < bottom; y++ {
				for x := left; x < right; x++ {
					source := (c*h+(y-top)*h/(bottom-top))*w + (x-left)*w/(right-left)
					at := (c*h+y)*w + x
					copy(out.Raw[at*size:(at+1)*size], from[source*size:])
				}
			}
		}
	}
	return out
}

// scoring returns the scoring map of mosaic m.
func (b *gaeBatch) scoring(m int, worth []float64) stages.Tensor {
	h, w := b.net.Height, b.net.Width
	values := make([]float32, h*w)
	for q := range 4 {
		top, left, bottom, right := quadrant(q, h, w)
		for y := top; y < bottom; y++ {
			for x := left; x < right; x++ {
				values[y*w+x] = float32(worth[q*len(worth)/4+m])
			}
		}
	}
	if b.Variant == official {
		for y := h/2 - 1; y <= h/2; y++ {
			for x := w/2 - 1; x <= w/2; x++ {
				values[y*w+x] = 1
			}
		}
	}
	return stages.NewTensor(values, h, w)
}

// quadrant returns the bounds of quadrant q, row by row.
func quadrant(q, height, width int) (top, left, bottom, right int) {
	top, bottom = 0, height/2
	if q > 1 {
		top, bottom = height/2, height
	}
	left, right = 0, width/2
	if q%2 == 1 {
		left, right = width/2, width
	}
	return top, left, bottom, right
}
