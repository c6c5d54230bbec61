package perturb

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/program"
)

// SubsetParams are the parameters of [Subset]. A stage that implies it has those it needs, of the same names
// and types.
type SubsetParams struct {
	stages.Precise
	Target    string    `yaml:"target" doc:"the class whose response is recorded, unless targets is wired, as model/predict has it: predicted, label, a class's number or name, or a difference"`
	Draw      string    `yaml:"draw" doc:"what a subset is: fixed, one of all with the same number of units; bernoulli, each unit with probability p; shapley, of a number drawn by the weights of the Shapley kernel; single, one unit after the other; permutation, the beginnings of random orders of all units" choices:"fixed|bernoulli|shapley|single|permutation"`
	Samples   int       `yaml:"samples" doc:"how many subsets are drawn, of each size; permutation: how many orders; 0: two for each unit, at least 200" min:"0" max:"1000000"`
	Sizes     []int     `yaml:"sizes" doc:"fixed: how many units a subset has, instead of a share of them; several sizes come one after the other" min:"1"`
	Shares    []float64 `yaml:"shares" doc:"fixed: which share of the units a subset has, unless sizes is given, rounded down to whole ones but not to none" min:"0" max:"1"`
	P         float64   `yaml:"p" doc:"bernoulli: the probability that a unit is replaced" min:"0" max:"1"`
	Paired    bool      `yaml:"paired" doc:"shapley: each subset is followed by its complement; permutation: each order by its reverse"`
	Repeats   int       `yaml:"repeats" doc:"substrates random and noisy: how often each subset is replaced, each time by other noise" min:"1" max:"100000"`
	Substrate string    `yaml:"substrate" doc:"what replaces the units, as in perturb/ablation; segment-mean is the mean of each channel over the unit, noisy the image plus normal noise" choices:"blur|zero|black|mean|random|noisy|channel-mean|segment-mean|images|mask|pad|removal"`
	Noise     float64   `yaml:"noise" doc:"substrate noisy: the noise's standard deviation, in values of the normalised image" min:"0" max:"1000"`
	Kernel    int       `yaml:"kernel" doc:"blur: side of the kernel in pixels, odd" min:"1" max:"1023"`
	Sigma     float64   `yaml:"sigma" doc:"blur: standard deviation of the kernel in pixels" min:"0.01" max:"1000"`
	Unit      string    `yaml:"unit" doc:"what is replaced at once: pixels, of a text its tokens but the special ones, square regions, or the segments on the port segments" choices:"pixel|region|segment"`
	Region    int       `yaml:"region" doc:"unit region: their side in pixels; the right and the lower border cut them off" min:"1" max:"1024"`
}

// params returns the parameters that curves have, too.
func (p SubsetParams) params() Params {
	return Params{Substrate: p.Substrate, Kernel: p.Kernel, Sigma: p.Sigma, Unit: p.Unit, Region: p.Region}
}

// Validate rejects kernels without a centre, and parameters that exclude each other.
func (p SubsetParams) Validate() error {
	if err := validTarget(p.Target); err != nil {
		return err
	}
	switch {
	case p.Kernel%2 == 0:
		return stages.BadField("kernel", "kernel is %d: its side must be odd to have a centre", p.Kernel)
	case p.Repeats > 1 && p.Substrate != "random" && p.Substrate != "noisy":
		return stages.BadField("repeats", "repeats is %d, but %s replaces units by the same pixels each "+
			"time: it is more than 1 only with substrate: random or noisy", p.Repeats, p.Substrate)
	case p.Draw == "fixed" && len(p.Sizes) == 0 && len(p.Shares) == 0:
		return stages.BadField("sizes", "how many units a subset has isn't given: give sizes or shares")
	}
	return nil
}

// Subset replaces random subsets of an image's units.
var Subset = program.Stage(stages.Def[SubsetParams]{
	Name: "perturb/subset",
	Doc: `the model's response while random subsets are replaced

Subsets of pixels, regions or segments are drawn for each image, whatever the map, so
that scores and methods share the forward passes:

  subset: {uses: perturb/subset, in: {model: model, images: images}}
  correlation: {uses: score/faithfulness-correlation, in: {maps: maps, subsets: subset}}

A method that isn't wired to such a stage makes one of its own, which is the same stage
only if all parameters are equal, those too that the draw doesn't use. The defaults
are those of faithfulness correlation, Bhatt et al., IJCAI 2020, in Quantus, with about
the share that its subsets have of 224×224 pixels: sizes: [224] has its number.
The subsets depend on the experiment's seed and the image alone. A Shapley kernel has
subsets of k of M units with a probability in proportion to (M − 1)/(k·(M − k)): Lundberg
and Lee, "A Unified Approach to Interpreting Model Predictions", NeurIPS 2017. Of an order
there are the M − 1 beginnings that aren't empty and lack a unit: Castro et al., "Polynomial
Calculation of the Shapley Value Based on Sampling", 2009.`,
	Version:  1,
	Relation: stages.Each,
	Seeded:   true,
	Device:   true,
	Passes:   stages.Passes{Forward: "rows + 2"},
	Inputs:   subsetInputs(),
	Outputs: []stages.Port{
		{Name: "subsets", Type: stages.Subsets,
			Doc: "u8 [subsets,⌈units/8⌉], the units that are replaced at once, as numpy.packbits has them"},
		{Name: "responses", Type: stages.Responses,
			Doc: "f64 [3,subsets + 2], probability, logit and correctness of the class: for the image, for " +
				"each subset, and for all units replaced"},
		{Name: "segments", Type: stages.Segments,
			Doc: "u32 [H,W], the unit of each pixel; 4294967295 for a special token of a text, which is of " +
				"none"},
		{Name: "differences", Type: stages.Differences,
			Doc: "what a value of the normalised image loses when its unit is replaced: the first time, or " +
				"with substrate: noisy each time; of a text [1,1,n], 1 for a token that is a unit"},
	},
	Defaults: SubsetParams{Target: program.PredictedClass, Draw: "fixed", Samples: 100,
		Shares: []float64{0.0045}, P: 0.5, Paired: true, Repeats: 1, Substrate: "black", Noise: 0.2,
		Kernel: 11, Sigma: 11, Unit: "pixel", Region: 16},
	Check: func(p SubsetParams, wired func(string) bool) error {
		if err := checkTarget(p.Target, wired); err != nil {
			return err
		}
		if wired(stages.TextsName) {
			return checkUnits(p.Substrate, p.Unit, true)
		}
		return p.params().check(wired)
	},
	Declares: func(p SubsetParams, in map[string]stages.Declared) stages.Declared {
		d := stages.Declared{}
		switch p.Substrate {
		case "zero", "black", "mask", "pad":
			d["reference"] = p.Substrate
		}
		if _, wired := in["targets"]; !wired {
			d["target"] = p.Target
		}
		return d
	},
	Facts: func(p SubsetParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		return p.facts(in)
	},
	Run: func(ctx context.Context, p SubsetParams, e *stages.Env) error {
		n, err := program.Load(e)
		if err != nil {
			return err
		}
		if n.Text != nil {
			return p.runTexts(ctx, e, n)
		}
		rows := many
		if units := p.params().units(n.Height, n.Width); units > 0 {
			rows = p.rows(units) / p.Repeats
		} else if p.Draw != "single" && p.Draw != "permutation" {
			rows = p.rows(many) / p.Repeats
		}
		m, err := n.Masked(ctx, e.Slot, n.Fit(rows+2, e.Batch))
		if err != nil {
			return err
		}
		r := subsetRun{p, e, n, m, make([]float32, n.Size()), make([]float32, n.Size())}
		for i := range e.Len() {
			if err := r.item(ctx, i); err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Done(1)
		}
		return nil
	},
})

func subsetInputs() []stages.Port {
	ports := blendInputs()
	return slices.DeleteFunc(ports, func(p stages.Port) bool { return p.Name == "maps" })
}

// facts returns the facts of the outputs: "responses" names the rows of the responses; the others are the
// parameters that scores ask for. "sizes" is the number of fixed sizes, "shares" has the shares of the sizes,
// for draws of fixed ones.
func (p SubsetParams) facts(in map[string]stages.Facts) (map[string]stages.Facts, error) {
	height, width, err := sizeOf(in)
	if err != nil {
		return nil, err
	}
	f := stages.Facts{"responses": classResponses, "draw": p.Draw, "unit": p.Unit,
		"samples": strconv.Itoa(p.Samples), "repeats": strconv.Itoa(p.Repeats), "substrate": p.Substrate}
	shares, units := p.Shares, p.params().units(height, width)
	if in["model"]["texts"] != "" {
		f["unit"], units = "token", 0
	}
	if len(p.Sizes) > 0 {
		shares = nil
	}
	if units > 0 {
		if err := p.fits(units); err != nil {
			return nil, err
		}
		for _, size := range p.Sizes {
			shares = append(shares, float64(size)/float64(units))
		}
	}
	if p.Draw == "fixed" {
		f["sizes"] = strconv.Itoa(len(p.sizes(1)))
	}
	if p.Draw == "fixed" && len(shares) > 0 {
		f["shares"] = sharesText(shares)[len("0,"):]
	}
	return map[string]stages.Facts{"subsets": f, "responses": recorded(maps.Clone(f), in),
		"segments": {}, "differences": {"draws": strconv.Itoa(p.kept())}}, nil
}

// kept returns the number of draws of the substrate whose differences are put.
func (p SubsetParams) kept() int {
	if p.Substrate == "noisy" {
		return p.Repeats
	}
	return 1
}

// A subsetRun runs the model on the subsets of one item after the other.
type subsetRun struct {
	SubsetParams
	env          *stages.Env
	net          *program.Net
	masked       program.Masked
	image, other []float32 // buffers
}

// item draws the subsets of item i, and puts the responses.
func (r *subsetRun) item(ctx context.Context, i int) error {
	e, n := r.env, r.net
	t, err := stages.DecodeTensor(e.In("images", i))
	if err == nil {
		err = n.Normalise(t, r.image)
	}
	if err != nil {
		return err
	}
	by, err := responderOf(e, i, n)
	if err != nil {
		return err
	}
	u, err := r.params().unitsOf(e, i, n.Height, n.Width)
	if err == nil {
		err = r.fits(u.Count)
	}
	if bytes := 4 * r.kept() * n.Size(); err == nil && bytes > largest {
		err = stages.BadField("repeats", "the differences of %d draws have %d MB an image: give fewer "+
			"repeats", r.kept(), bytes/1e6)
	}
	if err != nil {
		return err
	}
	sets := r.subsets(e.Rand("subsets", i), u.Count)
	responses := make([]response, sets.Count+2)
	var differences []float32
	for repeat := range r.Repeats {
		s := newSubstrate(r.params(), n)
		s.draw, s.noise = repeat, r.Noise
		if err := s.fill(e, i, r.image, r.other); err != nil {
			return err
		}
		if repeat < r.kept() {
			for k, x := range r.image {
				differences = append(differences, x-r.other[k])
			}
		}
		if err := r.run(ctx, by, u, sets, repeat, responses); err != nil {
			return err
		}
	}
	labels := make([]uint32, len(u.Of))
	for k, unit := range u.Of {
		labels[k] = uint32(unit)
	}
	e.Put("segments", i, stages.NewTensor(labels, n.Height, n.Width).Encode())
	e.Put("subsets", i, sets.Encode())
	shape := []int{n.Channels, n.Height, n.Width}
	if r.kept() > 1 {
		shape = append([]int{r.kept()}, shape...)
	}
	e.Put("differences", i, stages.NewTensor(differences, shape...).Encode())
	e.Put("responses", i, encodeCurve(e, responses))
	by.warn(e, i)
	return nil
}

// run sets the responses to each subset's row of a repeat; those to the image and to the substrate are part
// of the first one.
func (r *subsetRun) run(ctx context.Context, by responder, u metric.Units, sets metric.Subsets, repeat int,
	responses []response) error {
	var columns []int
	if repeat == 0 {
		columns = []int{0, sets.Count + 1}
	}
	for row := repeat; row < sets.Count; row += r.Repeats {
		columns = append(columns, 1+row)
	}
	r.masked.Set(r.image, r.other)
	for batch := range slices.Chunk(columns, r.masked.Batch) {
		for row, column := range batch {
			render(r.masked.Mask(row), u, sets, column)
		}
		if err := r.masked.Run(ctx); err != nil {
			return err
		}
		for row, column := range batch {
			responses[column] = by.response(r.masked.Row(row))
		}
	}
	return nil
}

// render writes the mask of a column of the responses: 1 keeps a pixel, 0 replaces it.
func render(mask []float32, u metric.Units, sets metric.Subsets, column int) {
	switch column {
	case 0:
		for i := range mask {
			mask[i] = 1
		}
	case sets.Count + 1:
		clear(mask)
	default:
		sets.Outside(column-1, u, mask)
	}
}

// largest is the most bytes that the subsets of an image may have.
const largest = 1 << 26

// fits returns an error if subsets can't be drawn of that many units.
func (p SubsetParams) fits(units int) error {
	for _, size := range p.Sizes {
		if p.Draw == "fixed" && size > units {
			return stages.BadField("sizes", "a subset of %d units can't be drawn of the %d of an image: "+
				"give sizes of at most %d, or instead of sizes a share, such as shares: [0.2]", size, units,
				units)
		}
	}
	if bytes := float64(p.rows(units)) * math.Ceil(float64(units)/8); bytes > largest {
		return stages.BadField("unit", "there are %d subsets of %d units, %.0f MB an image: give larger "+
			"units", p.rows(units), units, bytes/1e6)
	}
	return nil
}
