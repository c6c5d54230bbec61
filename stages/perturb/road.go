package perturb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/impute"
	"github.com/runexp/runexp/stages/internal/program"
)

// RoadParams are the parameters of [Road].
type RoadParams struct {
	stages.Precise
	Shares  []float64 `yaml:"shares" doc:"the shares of the pixels that are removed, rounded down to whole pixels; the image as it is comes first" min:"0" max:"1"`
	Order   string    `yaml:"order" doc:"morf removes the most relevant pixels first, lerf the least relevant; random draws an order for each image, the same for all maps" choices:"morf|lerf|random"`
	Variant string    `yaml:"variant" doc:"order lerf: whether shares are removed (paper) or kept (official)" choices:"paper|official"`
	Noise   float64   `yaml:"noise" doc:"standard deviation of the noise on imputed pixels, as a share of the range of pixel values" min:"0" max:"1"`
	Values  string    `yaml:"values" doc:"the order of pixels: by the magnitude or the signed value of the sum over channels" choices:"magnitude|signed"`
	Target  string    `yaml:"target" key:"added" doc:"whose response is recorded, unless targets is wired: the class, as model/predict has it, or an expression of the model's outputs, such as sum(output[3])"`
	Ties    string    `yaml:"ties" doc:"the order of pixels of equal value: row by row, which favours the top left and leaves a constant map without an order, or random, drawn for each map" choices:"index|random"`
}

// Validate rejects malformed targets, and shares that leave nothing to impute from, or nothing to impute.
func (p RoadParams) Validate() error {
	if err := validTarget(p.Target); err != nil {
		return err
	}
	if len(p.Shares) == 0 {
		return stages.BadField("shares", "shares is empty: give it a share of the pixels to remove")
	}
	for _, s := range p.Shares {
		if s <= 0 || s >= 1 {
			return stages.BadField("shares", "the share %v isn't between 0 and 1: pixels are imputed from "+
				"those that remain, and the image as it is comes first anyway", s)
		}
	}
	return nil
}

// Road is the perturbation of the metric ROAD, Rong et al., "A Consistent and Efficient Evaluation Strategy
// for Attribution Methods", ICML 2022, section 4.2.
var Road = program.Stage(stages.Def[RoadParams]{
	Name: "perturb/road",
	Doc: `the model's response while pixels are removed and imputed

Noisy linear imputation: a removed pixel is the weighted mean of its neighbours, removed
or not, plus a little noise, so that it shows nothing of the shape of what was removed.
The noise of a pixel depends on the experiment's seed and the image alone. Rong et al.,
"A Consistent and Efficient Evaluation Strategy for Attribution Methods", ICML 2022.`,
	Definition: stages.Definition{
		Formula: "f(xₖ), with each removed pixel the mean of its neighbours, weighted 1/6 at edges " +
			"and 1/12 at corners, plus noise",
		Unit:        "a pixel with all its channels",
		Operator:    "noisy linear imputation",
		Response:    "probability, logit and correctness of the explained class",
		Reference:   "the image, the first point",
		Aggregation: "none: a value for each point, of which score/road and others are made",
		Randomness: "the noise, by the experiment's seed and the image; the order of equal pixels, by " +
			"the map, or of all with order: random",
		Undefined: "for a map with a value that isn't a number, and with ties: index for a constant one",
	},
	Version:  2,
	Passes:   stages.Passes{Forward: "points"},
	Relation: stages.Each,
	Seeded:   true,
	Device:   true,
	Inputs:   inputs(),
	Outputs:  outputs(),
	Defaults: RoadParams{Shares: []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9}, Order: "morf",
		Variant: "paper", Noise: 0.01, Values: "signed", Ties: "random",
		Target: program.PredictedClass},
	Check: func(p RoadParams, wired func(string) bool) error { return checkTarget(p.Target, wired) },
	Variants: []stages.Variant{{
		Item: "least relevant first (order: lerf)", Default: "paper",
		Differs: "official removes all but the share of the most relevant pixels, so that the image of a " +
			"large share is nearly whole",
		Golden: "road",
	}, {
		Item: "noise", Default: "noise: 0.01 of the range of pixel values",
		Differs: "pytorch-grad-cam adds 0.01 to normalised values, which is noise: 0.01 times the model's " +
			"deviation; all codes draw it without a seed",
	}, {
		Item: "equal pixels", Default: "ties: random",
		Differs: "the official code adds noise of 1e-4 of the map's range to all pixels; ties: random " +
			"draws for equal ones alone",
		Golden: "road",
	}},
	Facts: func(p RoadParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		f := recorded(removal(p.Order).facts(), in)
		f["imputation"] = "noisy-linear"
		f["shares"] = sharesText(p.Shares)
		if p.keeps() {
			f["variant"] = p.Variant
		}
		return map[string]stages.Facts{"curves": f}, nil
	},
	Hooks: func(p RoadParams) stages.Hooks {
		if p.keeps() {
			return stages.Hooks{} // it removes the other pixels
		}
		return stages.Hooks{Replaces: p.replacement()}
	},
	Run: func(ctx context.Context, p RoadParams, e *stages.Env) error { return p.run(ctx, e) },
})

// keeps reports whether shares are of the pixels that are kept.
func (p RoadParams) keeps() bool { return p.Order == "lerf" && p.Variant == "official" }

func (p RoadParams) replacement() *stages.Replacement {
	return &stages.Replacement{By: "values imputed from their neighbours", Shares: p.Shares}
}

// points returns how many of n pixels are removed at each point.
func (p RoadParams) points(n int) []int {
	points := p.replacement().Points(n, 0)
	for k := range points[1:] {
		if p.keeps() {
			points[1+k] = n - points[1+k]
		}
	}
	return points
}

// A removalOf an item makes its images. It may run while the device computes, and changes only its own
// state.
type removalOf struct {
	RoadParams
	net    *program.Net
	image  stages.Tensor
	ranks  ranks
	noise  []float32 // by channel and pixel, normalised; nil for none
	images [][]float32
	err    error
	done   chan struct{}
}

// newRemoval reads the inputs for the images of item i.
func (p RoadParams) newRemoval(e *stages.Env, i int, n *program.Net) (r *removalOf, err error) {
	r = &removalOf{RoadParams: p, net: n, done: make(chan struct{})}
	if r.image, err = stages.DecodeTensor(e.In("images", i)); err != nil {
		return r, err
	}
	if r.ranks, err = ranksOf(e.In("maps", i), n.Height, n.Width, true); err != nil {
		return r, err
	}
	if p.Order == "random" {
		r.ranks, err = Params{Unit: "pixel"}.randomRanks(e, i, n.Height, n.Width)
	}
	if p.Noise > 0 && r.ranks.units > 0 {
		draw := e.Rand("noise", i)
		r.noise = make([]float32, n.Size())
		for k := range r.noise {
			c := k / r.ranks.units
			r.noise[k] = float32(draw.NormFloat64() * p.Noise * n.Scale / n.Std[c])
		}
	}
	return r, err
}

// make makes the image of each point.
func (r *removalOf) make(ctx context.Context, m *impute.Imputer) error {
	n := r.ranks.units
	if n == 0 {
		return nil
	}
	image := make([]float32, r.net.Size())
	if err := r.net.Normalise(r.image, image); err != nil {
		return err
	}
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(r.ranks.of[a], r.ranks.of[b]) })
	if r.Order == "lerf" {
		slices.Reverse(order)
	}
	points := r.points(n)
	r.images = make([][]float32, len(points))
	rising := make([]int, len(points)) // points by the number of removed pixels
	for k := range rising {
		rising[k] = k
	}
	slices.SortStableFunc(rising, func(a, b int) int { return points[a] - points[b] })
	removed, gone := make([]bool, n), 0
	for _, k := range rising {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for ; gone < points[k]; gone++ {
			removed[order[gone]] = true
		}
		if gone > 0 {
			// The values imputed at the last point are the first guess.
			if err := m.Impute(image, removed); err != nil {
				return err
			}
		}
		r.images[k] = slices.Clone(image)
		for i := range r.noise {
			if removed[i%n] {
				r.images[k][i] += r.noise[i]
			}
		}
	}
	return nil
}

// run removes and imputes the pixels of the next items on all processors while the device has the last ones.
func (p RoadParams) run(ctx context.Context, e *stages.Env) error {
	n, err := program.Load(e)
	if err != nil {
		return err
	}
	points := len(p.Shares) + 1
	f, err := n.Forward(ctx, e.Slot, n.Fit(e.Len()*points, e.Batch))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	workers := min(runtime.GOMAXPROCS(0), e.Len())
	imputers := make(chan *impute.Imputer, workers)
	for range workers {
		imputers <- impute.New(n.Height, n.Width)
	}
	removals := make([]*removalOf, e.Len())
	start := func(i int) error {
		r, err := p.newRemoval(e, i, n)
		if err != nil {
			return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
		}
		removals[i] = r
		running.Go(func() {
			m := <-imputers
			r.err = r.make(ctx, m)
			imputers <- m
			close(r.done)
		})
		return nil
	}
	c := newCollector(e, f, points)
	for i := range e.Len() {
		for next := i; next < min(i+1+workers, e.Len()); next++ {
			if removals[next] == nil {
				if err := start(next); err != nil {
					return err
				}
			}
		}
		r := removals[i]
		<-r.done
		by, err := responderOf(e, i, n)
		if err = errors.Join(r.err, err); err == nil {
			by.warn(e, i)
			err = c.add(ctx, i, by, r.images)
		}
		if err != nil {
			return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
		}
		removals[i].images = nil
	}
	return c.flush(ctx)
}
