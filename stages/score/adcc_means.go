package score

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// ADCCMeansParams are the parameters of [ADCCMeans], which has none.
type ADCCMeansParams struct{}

// ADCCMeans is the number that OpenVINO XAI calls ADCC.
var ADCCMeans = stages.New(stages.Def[ADCCMeansParams]{
	Name: "score/adcc-means",
	Doc: `ADCC of the means over all images, one number

The harmonic mean of the mean coherency, one less the mean complexity and one less the
mean drop, as OpenVINO XAI computes it: not the mean of the images' scores, and larger
than it where images differ. An image counts if its three parts are defined. It is a stage
of its own, since score/adcc has a number for each image, from which this one can't be
had. Poppi, Cornia, Baraldi and Cucchiara, "Revisiting the Evaluation of Class Activation
Mapping for Explainability", CVPR 2021 workshop, define it for an image.`,
	Definition: stages.Definition{
		Formula:  "3/(1/c̄ + 1/(1 − k̄) + 1/(1 − d̄)), with the means of score/adcc's three parts",
		Unit:     "a pixel",
		Operator: "that of score/adcc", Response: "that of score/adcc", Reference: "that of score/adcc",
		Aggregation: "the harmonic mean of the parts' means over images",
		Randomness:  "that of score/adcc",
		Undefined:   "where no image has all three parts",
	},
	Version:  1,
	Relation: stages.Whole,
	Inputs: []stages.Port{
		{Name: "coherency", Type: stages.Scores, Doc: "the port of score/adcc"},
		{Name: "complexity", Type: stages.Scores, Doc: "the port of score/adcc"},
		{Name: "drop", Type: stages.Scores, Doc: "the port of score/adcc"},
	},
	Outputs: []stages.Port{{Name: "scores", Type: stages.Scores, Doc: "one for all images"}},
	Facts: func(ADCCMeansParams, map[string]stages.Facts) (map[string]stages.Facts, error) {
		return map[string]stages.Facts{"scores": partFacts("")["scores"]}, nil
	},
	Run: func(ctx context.Context, _ ADCCMeansParams, e *stages.Env) error {
		var sums [3]float64
		images, undefined := 0, 0
		for cell, coherency := range e.Ports[adccParts[0]] {
			for i := range coherency.Items.Len() {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				parts, err := adccPartsOf(e, cell, i)
				if err != nil {
					return err
				}
				if !metric.Defined(parts[:]) {
					undefined++
					continue
				}
				images++
				for k, v := range parts {
					sums[k] += v
				}
			}
		}
		if undefined > 0 {
			e.Warn("parts of ADCC are undefined on %d of %d images, which are left out", undefined,
				images+undefined)
		}
		n := float64(images) // 0/0 is NaN
		e.Emit("scores", "all", "", stages.Scalar(metric.Harmonic(sums[0]/n, 1-sums[1]/n, 1-sums[2]/n)))
		return nil
	},
})

// adccParts are the ports of the parts.
var adccParts = [3]string{"coherency", "complexity", "drop"}

// adccPartsOf returns the parts of image i of a cell, which must be the same image on all ports.
func adccPartsOf(e *stages.Env, cell, i int) (parts [3]float64, err error) {
	first := e.Ports[adccParts[0]]
	image, err := first[cell].Items.At(i)
	for k, port := range adccParts {
		if err != nil {
			return parts, err
		}
		cells := e.Ports[port]
		if len(cells) != len(first) || cells[cell].Items.Len() != first[cell].Items.Len() {
			return parts, fmt.Errorf("the ports %s and %s are of different images", adccParts[0], port)
		}
		var item stages.Item
		if item, err = cells[cell].Items.At(i); err == nil && item.ID != image.ID {
			err = fmt.Errorf("the ports %s and %s are of different images, %q and %q", adccParts[0], port,
				image.ID, item.ID)
		}
		var b []byte
		if err == nil {
			b, err = cells[cell].Load(i)
		}
		if err == nil {
			parts[k], err = stages.ScalarOf(b)
		}
	}
	return parts, err
}
