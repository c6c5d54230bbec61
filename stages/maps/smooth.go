package maps

import (
	"context"
	"math"

	"github.com/runexp/runexp/stages"
)

// SmoothParams are the parameters of [Smooth].
type SmoothParams struct {
	Kernel  int     `yaml:"kernel" doc:"the side K of the kernel in pixels, an odd number" min:"1" max:"65535"`
	Share   float64 `yaml:"share" doc:"the side of the kernel as a share of the map's shorter side, instead of kernel: K is the odd number next to the product; 0: K is kernel" min:"0" max:"1" key:"added"`
	Sigma   float64 `yaml:"sigma" doc:"the standard deviation in pixels; 0 for a quarter of the kernel's side" min:"0" max:"65536"`
	Padding string  `yaml:"padding" doc:"what lies beyond the border: the map, reflected without its outermost pixels, or zeros" choices:"reflect|zero"`
}

// Validate refuses kernels of even size, which have no middle.
func (p SmoothParams) Validate() error {
	if p.Kernel%2 == 0 && p.Share == 0 {
		return stages.BadField("kernel", "kernel %d has no pixel in the middle: choose an odd number",
			p.Kernel)
	}
	return nil
}

// Smooth convolves maps with a Gaussian: S-IntGrad after integrated gradients at the input, S-IxG after input
// × gradient.
var Smooth = stages.New(stages.Def[SmoothParams]{
	Name: "maps/smooth",
	Doc: `maps smoothed with a Gaussian

The kernel has K×K pixels and adds up to 1; channels are smoothed apart. Behind
attribute/integrated-gradients or attribute/input-x-gradient it makes the smoothed
attributions S-IntGrad and S-IxG of Rao, Böhle and Schiele, "Towards Better Understanding
Attribution Methods", CVPR 2022, section 5.2: σ = K/4, and K = 129
at the input, 17 at the middle and 9 at the final layer, in places of the layer: inner
layers' maps come with size: layer, and maps/upsample enlarges what is smoothed. For
images of another size than the paper's 448 pixels give the share: 0.288 is K = 129
there, and about as much of the layer is 17 and 9. A smoothed map keeps what its method
declares, though its sum changes at the border: reflect counts some values twice, zero
loses some.`,
	Version:  1,
	Relation: stages.Each,
	Inputs:   input(),
	Outputs:  output("smoothed maps"),
	Variants: []stages.Variant{{
		Item: "padding", Default: "padding: reflect",
		Differs: "the paper doesn't say what lies beyond the border, and has published no code of this",
		Golden:  "smoothing",
	}},
	Declares: func(_ SmoothParams, in map[string]stages.Declared) stages.Declared { return in["maps"] },
	Defaults: SmoothParams{Kernel: 129, Padding: "reflect"},
	Run: func(ctx context.Context, p SmoothParams, e *stages.Env) error {
		kernel := p.weights()
		return each(ctx, e, 0, func(_ int, f field) (field, error) {
			if side := p.side(f.height, f.width); side != len(kernel) {
				q := p
				q.Kernel = side
				kernel = q.weights()
			}
			for c := range f.channels {
				p.smooth(f.channel(c), f.height, f.width, kernel)
			}
			return f, nil
		})
	},
})

// side returns the side of the kernel for maps of a size.
func (p SmoothParams) side(height, width int) int {
	if p.Share == 0 {
		return p.Kernel
	}
	return 2*int(p.Share*float64(min(height, width))/2) + 1
}

// weights returns the kernel along one axis.
func (p SmoothParams) weights() []float64 {
	sigma := p.Sigma
	if sigma == 0 {
		sigma = float64(p.Kernel) / 4
	}
	w, sum := make([]float64, p.Kernel), 0.0
	for i := range w {
		d := float64(i-p.Kernel/2) / sigma
		w[i] = math.Exp(-0.5 * d * d)
		sum += w[i]
	}
	for i := range w {
		w[i] /= sum
	}
	return w
}

// smooth smooths one channel in place: the kernel is the product of one for rows and one for columns.
func (p SmoothParams) smooth(v []float64, height, width int, kernel []float64) {
	for y := range height {
		p.line(v[y*width:], width, 1, kernel)
	}
	for x := range width {
		p.line(v[x:], height, width, kernel)
	}
}

// line smooths n values with a stride.
func (p SmoothParams) line(v []float64, n, apart int, kernel []float64) {
	middle := len(kernel) / 2
	padded := make([]float64, n+2*middle)
	for i := range padded {
		if k := p.beyond(i-middle, n); k >= 0 {
			padded[i] = v[k*apart]
		}
	}
	for i := range n {
		sum := 0.0
		for k, w := range kernel {
			sum += float64(w * padded[i+k])
		}
		v[i*apart] = sum
	}
}

// beyond returns the index of the pixel at position i, which may be beyond the border; −1 for zero. A
// reflection that is too short is reflected again.
func (p SmoothParams) beyond(i, n int) int {
	switch {
	case i >= 0 && i < n:
		return i
	case p.Padding == "zero":
		return -1
	case n == 1:
		return 0
	}
	period := 2 * (n - 1)
	i = (i%period + period) % period
	return min(i, period-i)
}
