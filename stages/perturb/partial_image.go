package perturb

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/delaunay"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/webp"
)

// run records the responses to images that show only some pixels, and their sizes. shown returns the pixels
// of each of count images of an item, nil if they are undefined; put takes the item's results. The images
// of the next items are made and measured on all processors while the device has the last ones.
func (p PICEndsParams) run(ctx context.Context, e *stages.Env, n *program.Net, count int,
	shown func(i int) ([][]bool, error), put func(i int, curve []response, lengths []float64) error) error {
	f, err := n.Forward(ctx, e.Slot, n.Fit(e.Len()*count, e.Batch))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	workers := make(chan struct{}, runtime.GOMAXPROCS(0))
	items := make([]*partial, e.Len())
	start := func(i int) error {
		known, err := shown(i)
		if err != nil {
			return err
		}
		items[i] = &partial{PICEndsParams: p, net: n, known: known,
			lengths: slices.Repeat([]float64{math.NaN()}, count)}
		if items[i].image, err = stages.DecodeTensor(e.In("images", i)); err != nil {
			return err
		}
		items[i].start(ctx, workers, &running)
		return nil
	}
	c := newCollector(e, f, count)
	c.put = func(i int, curve []response) error { return put(i, curve, items[i].lengths) }
	next := 0
	for i := range e.Len() {
		for ; next < min(i+2, e.Len()); next++ {
			if err := start(next); err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[next].ID, err)
			}
		}
		items[i].done.Wait()
		by, err := responderOf(e, i, n)
		if err = errors.Join(append(items[i].errs, err)...); err == nil {
			by.warn(e, i)
			err = c.add(ctx, i, by, items[i].normalised)
		}
		if err != nil {
			return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
		}
		items[i].normalised, items[i].known = nil, nil // lengths are read when the curve is complete
	}
	return c.flush(ctx)
}

// A partial item is an image, and the images that show only some of its pixels.
type partial struct {
	PICEndsParams
	net        *program.Net
	image      stages.Tensor
	known      [][]bool
	normalised [][]float32
	lengths    []float64
	errs       []error
	done       sync.WaitGroup
}

// start makes and measures the images, each on a processor that workers has a place for.
func (m *partial) start(ctx context.Context, workers chan struct{}, running *sync.WaitGroup) {
	m.normalised = make([][]float32, len(m.known))
	m.errs = make([]error, len(m.known))
	for k, known := range m.known {
		m.done.Add(1)
		running.Go(func() {
			defer m.done.Done()
			workers <- struct{}{}
			if m.errs[k] = context.Cause(ctx); m.errs[k] == nil {
				m.normalised[k], m.lengths[k], m.errs[k] = m.make(known)
			}
			<-workers
		})
	}
}

// make returns the normalised image in which only some pixels and the corners are known, and its size in
// bytes.
func (m *partial) make(known []bool) (normalised []float32, length float64, err error) {
	h, w := m.net.Height, m.net.Width
	normalised = make([]float32, m.net.Size())
	if err := m.net.Normalise(m.image, normalised); err != nil { // checks the shape
		return nil, 0, err
	}
	for _, corner := range []int{0, w - 1, (h - 1) * w, h*w - 1} {
		known[corner] = true
	}
	var bits []uint8
	var image stages.Tensor
	if m.Variant == "official" {
		values := fill(known, h, w, unit(m.image), func(sum, total float64) float32 {
			return float32(sum / total)
		})
		bits = make([]uint8, len(values))
		for i, v := range values {
			bits[i] = uint8(min(max(float32(v*255), 0), 255))
		}
		image = stages.NewTensor(values, 3, h, w)
	} else {
		// Sums of 8-bit numbers by integer weights are exact.
		bits = fill(known, h, w, eightBits(m.image), func(sum, total float64) uint8 {
			return uint8(math.RoundToEven(sum / total))
		})
		image = stages.NewTensor(bits, 3, h, w)
	}
	if err := m.net.Normalise(image, normalised); err != nil {
		return nil, 0, err
	}
	size, err := webp.Size(picture.FromPlanes(bits, w, h))
	return normalised, float64(size), err
}

// fill returns an image whose unknown pixels are interpolated; value makes a pixel of a sum of known ones,
// each as often as its weight says, and the sum of weights.
func fill[T uint8 | float32](known []bool, h, w int, image []T, value func(sum, total float64) T) []T {
	out := make([]T, len(image))
	copy(out, image)
	delaunay.Fill(known, h, w, func(pixel int, from [3]delaunay.Weight, total int) {
		for c := 0; c < len(image); c += h * w {
			sum := 0.0
			for _, f := range from {
				sum += float64(float64(f.Parts) * float64(image[c+f.Pixel]))
			}
			out[c+pixel] = value(sum, float64(total))
		}
	})
	return out
}

// unit returns the values of an image, in [0,1].
func unit(image stages.Tensor) []float32 {
	v := image.Float32s()
	if image.DType == stages.U8 {
		for i := range v {
			v[i] /= 255
		}
	}
	return v
}

// eightBits returns the values of an image, rounded to 8 bits.
func eightBits(image stages.Tensor) []uint8 {
	if image.DType == stages.U8 {
		return image.Raw
	}
	out := make([]uint8, image.Len())
	for i, v := range image.Float32s() {
		out[i] = uint8(min(max(math.RoundToEven(float64(v)*255), 0), 255))
	}
	return out
}
