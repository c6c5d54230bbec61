package attribute

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/program"
)

// OcclusionParams are the parameters of [Occlusion].
type OcclusionParams struct {
	Tapped
	Variant  string       `yaml:"variant" doc:"paper averages over the windows that cover a pixel; official is the code of Rao et al., which sums" choices:"paper|official"`
	Window   picture.Size `yaml:"window" doc:"height and width of the window in pixels, or in places of an inner layer: one number for both or [height, width]; of a text the width counts tokens"`
	Stride   picture.Size `yaml:"stride" doc:"distance from one window to the next down and across, likewise"`
	Baseline string       `yaml:"baseline" doc:"what fills the window: zero after normalisation, or black pixels; at an inner layer zeros, or its value for a black image; of a text zero embeddings, or the mask or pad token" choices:"zero|black|mask|pad"`
}

// Validate refuses windows without a size, and strides that leave gaps between windows.
func (p OcclusionParams) Validate() error {
	if err := p.Tapped.Validate(); err != nil {
		return err
	}
	if p.Window.IsZero() {
		return stages.BadField("window", "window is empty: give it a height and a width")
	}
	if p.Stride.IsZero() {
		return stages.BadField("stride", "stride is empty: give it a distance down and across")
	}
	if p.Stride.H > p.Window.H || p.Stride.W > p.Window.W {
		return stages.BadField("stride", "stride %v is larger than window %v, so that pixels between "+
			"windows would get no value", p.Stride, p.Window)
	}
	return nil
}

// Occlusion makes the occlusion maps of Zeiler and Fergus.
var Occlusion = method(stages.Def[OcclusionParams]{
	Name: "attribute/occlusion",
	Doc: `the drop of the output when a window hides a pixel

A rectangular window slides over the image; a pixel's value is the mean fall of the
explained output over the windows that cover it. Windows that reach beyond the
border are cut off. At an inner layer the window hides places of its value. Of a text it
slides over the tokens that aren't special, which get 0: window: 1 and stride: 1 leave
one token out after the other. Zeiler
and Fergus, "Visualizing and Understanding Convolutional Networks", ECCV 2014, section
4.2.`,
	Version: 1,
	Passes:  stages.Passes{Forward: "windows + 1"},
	Variants: []stages.Variant{{
		Item: "weight and place of the windows", Default: "paper",
		Differs: "official sums each fall divided by the window's pixels, and lets windows begin before " +
			"the image (even sizes) or centres them at multiples of the stride (odd sizes)",
		Golden: "gridpg_difull_dipart",
	}},
	Declares: func(p OcclusionParams, _ map[string]stages.Declared) stages.Declared {
		if p.Variant == "paper" { // no contribution: a fall counts in full for each pixel of its window
			return nil
		}
		return p.declares(contributionMap, p.Baseline)
	},
	Defaults: OcclusionParams{Tapped: tapped(), Variant: "paper", Window: picture.Square(8),
		Stride: picture.Square(4), Baseline: "zero"},
})

// A window is a rectangle of hidden pixels: rows top ≤ y < bottom, columns left ≤ x < right.
type window struct{ top, left, bottom, right int }

func (w window) pixels() int { return (w.bottom - w.top) * (w.right - w.left) }

func (p OcclusionParams) run(ctx context.Context, e *stages.Env, n *program.Net) error {
	var windows []window
	m, err := p.view(ctx, e, n, p.Baseline, func(height, width int) int {
		windows = p.windows(height, width)
		return len(windows) + 1 // the first mask shows the whole image
	})
	if err != nil {
		return err
	}
	for i := range e.Len() {
		t, err := p.target(e, i, n)
		if err != nil {
			return err
		}
		at, err := m.places(e, i, n)
		if err != nil {
			return err
		}
		if n.Text != nil {
			windows = p.windows(at.height, at.width)
			if len(windows) == 1 && at.width > 1 {
				e.WarnItem(i, "one window covers all %d tokens, so that they have equal values: window: 1 "+
					"and stride: 1 leave one out after the other", at.width)
			}
		}
		m.set(i)
		responses := make([]float64, 0, len(windows)+1)
		for len(responses) <= len(windows) {
			for row := range min(m.Batch, len(windows)+1-len(responses)) {
				fill(at.mask, 1)
				if k := len(responses) + row; k > 0 {
					windows[k-1].hide(at.mask, at.width)
				}
				at.write(m.mask(row))
			}
			if err := m.run(ctx); err != nil {
				return err
			}
			for row := 0; row < m.Batch && len(responses) <= len(windows); row++ {
				responses = append(responses, p.response(n, m.Row(row), t))
			}
		}
		falls := p.meanFall(windows, responses[0], responses[1:], at.height, at.width)
		p.putView(e, i, n, at.spread(falls), m)
	}
	return nil
}

// fill sets all values to x.
func fill[T any](v []T, x T) {
	for i := range v {
		v[i] = x
	}
}

// hide sets a mask of the given width to 0 inside w.
func (w window) hide(mask []float32, width int) {
	for y := w.top; y < w.bottom; y++ {
		clear(mask[y*width+w.left : y*width+w.right])
	}
}

// windows returns the positions of the window, row by row.
func (p OcclusionParams) windows(height, width int) []window {
	place := placePaper
	if p.Variant == "official" {
		place = placeOfficial
	}
	if height*width == 0 {
		return nil
	}
	var out []window
	across := place(width, p.Window.W, p.Stride.W)
	for _, y := range place(height, p.Window.H, p.Stride.H) {
		for _, x := range across {
			out = append(out, window{y[0], x[0], y[1], x[1]})
		}
	}
	return out
}

// placePaper returns the start and end of the windows along an axis, given side and stride: at multiples of
// the stride until the border is covered.
func placePaper(size, side, stride int) [][2]int {
	var out [][2]int
	for from := 0; ; from += stride {
		out = append(out, [2]int{from, min(from+side, size)})
		if from+side >= size {
			return out
		}
	}
}

// placeOfficial does the same in the way of the code of Rao et al., "Towards Better Understanding Attribution
// Methods", CVPR 2022.
func placeOfficial(size, side, stride int) [][2]int {
	var out [][2]int
	for k := range size/stride + side/stride - 1 {
		from := (k - side/stride + 1) * stride
		if side%2 == 1 {
			from = k*stride - side/2
		}
		if from, to := max(from, 0), min(from+side, size); from < to {
			out = append(out, [2]int{from, to})
		}
	}
	return out
}

// meanFall makes a map of the drops of the output under the windows.
func (p OcclusionParams) meanFall(windows []window, whole float64, responses []float64, height,
	width int) []float64 {
	sum := make([]float64, height*width)
	count := make([]float64, height*width)
	for k, w := range windows {
		fall := whole - responses[k]
		if p.Variant == "official" {
			fall /= float64(w.pixels())
		}
		for y := w.top; y < w.bottom; y++ {
			for i := y*width + w.left; i < y*width+w.right; i++ {
				sum[i] += fall
				count[i]++
			}
		}
	}
	if p.Variant == "paper" {
		for i, n := range count {
			sum[i] /= n
		}
	}
	return sum
}
