package attribute

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// IDGParams are the parameters of [IDG].
type IDGParams struct {
	Differentiated
	Variant  string `yaml:"variant" doc:"paper takes the samples of an interval within it, and the derivative along the path there; official places samples and takes slopes as the authors' code does" choices:"paper|official"`
	Steps    int    `yaml:"steps" doc:"number of outputs from which the samples are placed, and of samples" min:"2" max:"100000"`
	Baseline string `yaml:"baseline" doc:"where the path begins: zero after normalisation, or a black image; at an inner layer zeros, or its value for a black image; of a text zero embeddings, or the mask or pad token" choices:"zero|black|mask|pad"`
}

// IDG is integrated decision gradients.
var IDG = method(stages.Def[IDGParams]{
	Name: "attribute/idg",
	Doc: `gradients on the path, weighted by the slope of the output

(x − b)·∫ ∂f/∂x·∂f/∂α dα along the straight path from a baseline b to the image x:
derivatives count where the output rises, and hardly where it is saturated. Samples are
placed in proportion to the output's slope, which a first pass measures between equally
spaced positions, none for the least slope. The values of a map don't sum to a difference
of outputs. Walker et al., "Integrated Decision Gradients: Compute Your Attributions
Where the Model Makes Its Decision", AAAI 2024.`,
	Version:   1,
	Tolerance: kinks,
	Passes:    stages.Passes{Forward: "2 × steps", Backward: "steps"},
	Variants: []stages.Variant{{
		Item: "samples and slopes", Default: "variant: paper",
		Differs: "the authors' code takes an interval's samples in the next one, and leaves no room for " +
			"intervals without samples, so that later samples move towards the baseline and where the " +
			"output falls throughout, rounding alone places them; its slopes are differences of " +
			"successive outputs, 0 for the first, and it divides by the number of samples once more, " +
			"which scales a whole map (variant: official)",
		Golden: "paths.npz",
	}},
	Defaults: IDGParams{Differentiated: plain(tapped()), Variant: "paper", Steps: 50, Baseline: "zero"},
})

func (p IDGParams) run(ctx context.Context, e *stages.Env, n *program.Net) error {
	at, _ := quadrature("linspace-mean", p.Steps)
	w, err := p.walk(ctx, e, n, p.Steps)
	if err != nil {
		return err
	}
	q, err := p.derivative(ctx, e, n)
	if err != nil {
		return err
	}
	s := &straight{Tapped: p.Tapped, net: n}
	if s.line, err = n.Line(ctx, e.Slot, q.Layer, n.Fit(p.Steps, e.Batch)); err != nil {
		return err
	}
	if s.ends, err = p.ends(ctx, e, n, p.Baseline); err != nil {
		return err
	}
	for i := range e.Len() {
		t, err := p.target(e, i, n)
		if err != nil {
			return err
		}
		responses, err := s.responses(ctx, i, t, at)
		if err != nil {
			return err
		}
		d := p.decision(responses, s.from.of(i), s.to[i])
		if err := w.along(ctx, t, s.images[i], len(d.samples), d.write, d.take); err != nil {
			return err
		}
		if err := p.put(e, i, n, d.attribution(), w.slope.Shape()); err != nil {
			return err
		}
	}
	return nil
}

// A sample is a position on the path, from 0 to 1, and the part of the path for which it stands.
type sample struct{ at, width float64 }

// A decision is the integral over a path, sample by sample.
type decision struct {
	official bool
	from, to []float32
	samples  []sample
	response float64 // at the sample before
	sum      []float64
}

// decision returns the integral of an item, given the outputs at equally spaced positions.
func (p IDGParams) decision(responses []float64, from, to []float32) *decision {
	d := &decision{official: p.Variant == "official", from: from, to: to, sum: make([]float64, len(to))}
	if d.official {
		d.samples = officialSamples(responses)
	} else {
		d.samples = samplesBySlope(responses)
	}
	return d
}

func (d *decision) write(k int, dst []float32) { between(d.from, d.to, d.samples[k].at, dst) }

// take adds a sample: its derivatives times the derivative along the path, or times the slope since the
// sample before.
func (d *decision) take(v visit) {
	slope := 0.0
	switch {
	case d.official && v.k > 0:
		slope = (v.response - d.response) / (d.samples[v.k].at - d.samples[v.k-1].at)
	case !d.official:
		for i, g := range v.gradient {
			slope += float64(float64(g) * (float64(d.to[i]) - float64(d.from[i])))
		}
	}
	d.response = v.response
	weight := slope * d.samples[v.k].width
	for i, g := range v.gradient {
		d.sum[i] += float64(weight * float64(g))
	}
}

// attribution returns the integral, times the difference of the ends.
func (d *decision) attribution() []float64 {
	for i := range d.sum {
		d.sum[i] *= float64(d.to[i]) - float64(d.from[i])
		if d.official {
			d.sum[i] /= float64(len(d.samples))
		}
	}
	return d.sum
}

// stretched returns slopes from 0 for the least to 1 for the largest; all are 1 if they are equal, or one
// isn't finite.
func stretched(slopes []float64) []float64 {
	least, most := slices.Min(slopes), slices.Max(slopes)
	if least == most || math.IsNaN(most-least) || math.IsInf(most-least, 0) {
		return slices.Repeat([]float64{1}, len(slopes))
	}
	out := make([]float64, len(slopes))
	for k, v := range slopes {
		out[k] = (v - least) / (most - least)
	}
	return out
}

// samplesBySlope returns as many samples as there are responses. The intervals between these have samples in
// proportion to their stretched slopes, as nearly as whole numbers allow: what is left over goes to the
// largest remainders. The samples of an interval cut it into equal parts, at whose beginnings they lie. Each
// stands for the path up to the next one, the first also for what is before it, so that intervals without
// samples count.
func samplesBySlope(responses []float64) []sample {
	n, intervals := len(responses), len(responses)-1
	slopes := make([]float64, intervals)
	for k := range slopes {
		slopes[k] = responses[k+1] - responses[k]
	}
	shares := stretched(slopes)
	total := totalOf(shares)
	counts, order, left := make([]int, intervals), make([]int, intervals), n
	for k := range counts {
		shares[k] *= float64(n) / total
		counts[k] = int(shares[k])
		shares[k] -= float64(counts[k])
		left -= counts[k]
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(shares[b], shares[a]) })
	for _, k := range order[:max(left, 0)] {
		counts[k]++
	}
	var out []sample
	for k, count := range counts {
		out = appendSamples(out, float64(k)/float64(intervals), 1/float64(intervals), count)
	}
	end := 1.0
	for k := len(out) - 1; k >= 0; k-- {
		from := out[k].at
		if k == 0 {
			from = 0
		}
		out[k].width, end = end-from, from
	}
	return out
}

// officialSamples returns the samples of the authors' code. The slope before each response places samples,
// with 0 for the first, and what is left over fills the places of the largest of those without samples. Only
// places with samples take up room.
func officialSamples(responses []float64) []sample {
	n := len(responses)
	step := 1 / float64(n-1)
	slopes := make([]float64, n)
	for k := range n - 1 {
		slopes[k+1] = (responses[k+1] - responses[k]) / step
	}
	shares := stretched(slopes)
	shares[0] = 0
	total := totalOf(shares)
	if total == 0 { // it falls evenly: the authors' code divides by 0
		for k := 1; k < n; k++ {
			shares[k], total = 1, total+1
		}
	}
	counts, left := make([]int, n), n
	var empty []int
	for k := range counts {
		shares[k] = shares[k] / total * float64(n)
		counts[k] = int(shares[k])
		left -= counts[k]
		if counts[k] == 0 {
			empty = append(empty, k)
		}
	}
	slices.SortStableFunc(empty, func(a, b int) int { return cmp.Compare(shares[b], shares[a]) })
	for _, k := range empty[:left] { // left ≤ len(empty): the other counts are at least 1
		counts[k] = 1
	}
	var out []sample
	from := 0.0
	for _, count := range counts {
		if count > 0 {
			out = appendSamples(out, from, step, count)
			from += step
		}
	}
	return out
}

// appendSamples appends the samples of an interval.
func appendSamples(out []sample, from, width float64, count int) []sample {
	for k := range count {
		part := width / float64(count)
		out = append(out, sample{from + float64(float64(k)*part), part})
	}
	return out
}

func totalOf(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}
