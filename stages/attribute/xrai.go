package attribute

import (
	"context"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/superpixel"
)

// XRAIParams are the parameters of [XRAI].
type XRAIParams struct {
	Common
	Balanced
	Algorithm string    `yaml:"algorithm" doc:"full chooses the region with the largest mean over the pixels that aren't chosen yet; fast takes regions in the order of their means over all their pixels" choices:"full|fast"`
	Steps     int       `yaml:"steps" doc:"number of derivatives along each of the two paths, both ends included" min:"1" max:"100000"`
	Scales    []float64 `yaml:"scales" doc:"the scales of Felzenszwalb's segmentation that regions are taken from" min:"0" max:"1000000"`
	MinSize   int       `yaml:"min_size" doc:"pixels of a segment, at least" min:"1" max:"1000000"`
	Side      int       `yaml:"side" doc:"side in pixels of the square to which images are resized to be segmented; 0: they aren't" min:"0" max:"4096"`
	Dilation  int       `yaml:"dilation" doc:"radius in pixels of the disk by which segments are enlarged" min:"0" max:"100"`
	MinPixels int       `yaml:"min_pixels" doc:"regions with fewer pixels that aren't chosen yet are left out" min:"1" max:"1000000"`
}

// XRAI is integrated gradients, averaged over regions of the image.
var XRAI = method(stages.Def[XRAIParams]{
	Name: "attribute/xrai",
	Doc: `integrated gradients, averaged over regions of the image

Integrated gradients from a baseline of the image's smallest value and from one of its
largest, their mean, and of a pixel's channels the largest. Then overlapping segments of
six scales are chosen one after the other, each by the mean over its new pixels, which is
their value in the map. Segments on the port segments are taken as they are instead. By
default it explains the probability, as the authors' examples do. Which region comes next
may depend on the last digits. Kapishnikov et al., "XRAI: Better Attributions Through
Regions", ICCV 2019.`,
	Version:   1,
	Tolerance: pathTolerance,
	Passes:    stages.Passes{Forward: "2 × steps", Backward: "2 × steps"},
	Inputs: append(imageInputs("its regions are of pixels of similar colours: "+
		"use attribute/integrated-gradients"),
		stages.Port{Name: "segments", Type: stages.Segments, Optional: true,
			Doc: "segments to choose from, instead of Felzenszwalb's"}),
	Defaults: XRAIParams{Common: xraiCommon(), Algorithm: "full", Steps: 100,
		Scales: []float64{50, 100, 150, 250, 500, 1200}, MinSize: 150, Side: 224, Dilation: 5, MinPixels: 50},
})

func xraiCommon() Common {
	c := common()
	c.Output = "probability"
	return c
}

// Validate refuses what [Common] refuses, and a list without scales.
func (p XRAIParams) Validate() error {
	if len(p.Scales) == 0 {
		return stages.BadField("scales", "scales is empty: give at least one")
	}
	return p.Common.Validate()
}

func (p XRAIParams) run(ctx context.Context, e *stages.Env, n *program.Net) error {
	at, weights := quadrature("linspace-mean", p.Steps)
	t := Differentiated{Tapped{p.Common, "image"}, p.Balanced}
	q, err := t.derivative(ctx, e, n)
	if err != nil {
		return err
	}
	path, err := n.Path(ctx, e.Slot, q, n.Fit(len(at), e.Batch))
	if err != nil {
		return err
	}
	images, err := normalised("images", e, n)
	if err != nil {
		return err
	}
	s := &straight{Tapped: t.Tapped, net: n, path: path, ends: ends{images: images, to: images}}
	for i, image := range images {
		target, err := p.target(e, i, n)
		if err != nil {
			return err
		}
		sum := make([]float64, len(image))
		for _, level := range []float32{slices.Min(image), slices.Max(image)} {
			s.from = baselines{slices.Repeat([]float32{level}, len(image))}
			values, err := s.integral(ctx, i, target, at, weights)
			if err != nil {
				return err
			}
			for k, v := range values {
				sum[k] += v / 2
			}
		}
		regions, err := p.regions(e, i, n, image)
		if err != nil {
			return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
		}
		values := p.fill(largest(sum, n.Height*n.Width), regions)
		putMap(e, i, p.reduced(values, 1, n.Height, n.Width))
	}
	return nil
}

// regions returns the regions of item i's normalised image, or those of the port segments.
func (p XRAIParams) regions(e *stages.Env, i int, n *program.Net, image []float32) ([]region, error) {
	if b := e.In("segments", i); b != nil {
		u, err := metric.Segments(b, n.Height, n.Width)
		if err != nil {
			return nil, fmt.Errorf("port segments: %w", err)
		}
		labels := make([]uint32, len(u.Of))
		for k, l := range u.Of {
			labels[k] = uint32(l)
		}
		return regionsOf(labels), nil
	}
	m := superpixel.ImageOf(stages.NewTensor(image, n.Channels, n.Height, n.Width))
	if !m.Finite() {
		return nil, fmt.Errorf("a value of the image isn't a number, or is infinite")
	}
	return p.candidates(m), nil
}

// largest returns the largest of the channels of each of n pixels.
func largest(values []float64, n int) []float64 {
	out := slices.Clone(values[:n])
	for k, v := range values[n:] {
		out[k%n] = max(out[k%n], v)
	}
	return out
}
