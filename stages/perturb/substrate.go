package perturb

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/program"
)

// A substrate makes the image that replaces the pixels, in normalised values.
type substrate struct {
	kind   string
	net    *program.Net
	kernel []float64 // the blur kernel along one axis; the kernel is separable
	of     Params    // which say what the units are
	draw   int       // of the noise, from 0
	noise  float64   // added to the image
}

func newSubstrate(p Params, n *program.Net) substrate {
	s := substrate{kind: p.Substrate, net: n, of: p}
	if s.kind == "blur" {
		s.kernel = kernel(p.Kernel, p.Sigma)
	}
	return s
}

// fill writes the substrate of item i, whose normalised image is x, to dst.
func (s substrate) fill(e *stages.Env, i int, x, dst []float32) error {
	n := s.net.Height * s.net.Width
	switch s.kind {
	case "blur":
		for c := range s.net.Channels {
			blur(x[c*n:(c+1)*n], dst[c*n:(c+1)*n], s.net.Height, s.net.Width, s.kernel)
		}
	case "zero":
		clear(dst)
	case "black":
		for k := range dst {
			dst[k] = s.net.Black(k / n)
		}
	case "mean":
		sum := 0.0
		for _, m := range s.net.Mean {
			sum += m
		}
		for k := range dst {
			dst[k] = float32(sum / float64(len(s.net.Mean)))
		}
	case "random":
		r := s.rand(e, i)
		for k := range dst {
			dst[k] = r.Float32()
		}
	case "noisy":
		r := s.rand(e, i)
		for k, v := range x {
			dst[k] = v + float32(s.noise*r.NormFloat64())
		}
	case "channel-mean":
		s.fillMeans(metric.Units{Of: make([]int32, n), Count: 1}, x, dst)
	case "segment-mean":
		u, err := s.of.unitsOf(e, i, s.net.Height, s.net.Width)
		if err != nil {
			return err
		}
		s.fillMeans(u, x, dst)
	case "images":
		t, err := stages.DecodeTensor(e.In("substrates", i))
		if err == nil {
			err = s.net.Normalise(t, dst)
		}
		if err != nil {
			return fmt.Errorf("port substrates: %w", err)
		}
	}
	return nil
}

// rand returns the generator of the noise of item i.
func (s substrate) rand(e *stages.Env, i int) *rand.Rand {
	if s.draw > 0 {
		return e.Rand("substrate "+strconv.Itoa(s.draw), i)
	}
	return e.Rand("substrate", i)
}

// fillMeans fills the channels of each unit with their mean over it.
func (s substrate) fillMeans(u metric.Units, x, dst []float32) {
	n := len(u.Of)
	for c := range s.net.Channels {
		values := make([]float64, n)
		for k := range values {
			values[k] = float64(x[c*n+k])
		}
		mean := u.Mean(values)
		for k, unit := range u.Of {
			dst[c*n+k] = float32(mean[unit])
		}
	}
}

// kernel returns the blur kernel of the MAS and RISE code along one axis: a unit impulse in the middle of
// size pixels, smoothed by a Gaussian that is truncated at 4σ and reflected at the ends. It is nearly flat if
// σ is as large as the kernel.
func kernel(size int, sigma float64) []float64 {
	radius := int(4*sigma + 0.5)
	weights := make([]float64, 2*radius+1)
	sum := 0.0
	for i := range weights {
		d := float64(i - radius)
		weights[i] = math.Exp(-0.5 * d * d / (sigma * sigma))
		sum += weights[i]
	}
	out := make([]float64, size)
	for i := range out {
		for k, w := range weights {
			if mirror(i+k-radius, size) == size/2 {
				out[i] += w / sum
			}
		}
	}
	return out
}

// mirror reflects an index into 0 … n−1, repeating the ends: … 1 0 | 0 1 2 …
func mirror(i, n int) int {
	i %= 2 * n
	if i < 0 {
		i += 2 * n
	}
	if i >= n {
		i = 2*n - 1 - i
	}
	return i
}

// blur convolves one channel with the separable kernel, with zeros outside the image.
func blur(x, dst []float32, height, width int, kernel []float64) {
	half := len(kernel) / 2
	rows := make([]float64, len(x))
	for y := range height {
		for column := range width {
			sum := 0.0
			for k := max(0, half-column); k < min(len(kernel), width+half-column); k++ {
				sum += float64(kernel[k] * float64(x[y*width+column+k-half]))
			}
			rows[y*width+column] = sum
		}
	}
	for y := range height {
		for column := range width {
			sum := 0.0
			for k := max(0, half-y); k < min(len(kernel), height+half-y); k++ {
				sum += float64(kernel[k] * rows[(y+k-half)*width+column])
			}
			dst[y*width+column] = float32(sum)
		}
	}
}
