package attribute

import (
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// checkCompared refuses what check refuses, and a baseline that is overridden by the port baselines.
func (c Common) checkCompared(baseline string, wired func(string) bool) error {
	if err := c.check(wired); err != nil {
		return err
	}
	if baseline != "zero" && wired("baselines") {
		return stages.BadField("baseline", "baseline is %s, but the port baselines is wired and overrides "+
			"it: leave baseline out", baseline)
	}
	return nil
}

// compares returns what a method declares that compares images with a baseline.
func (c Common) compares(baseline string, in map[string]stages.Declared) stages.Declared {
	if _, wired := in["baselines"]; wired {
		baseline = "images"
	}
	return c.declares(contributionMap, baseline)
}

// baselines are the normalised images that items are compared with: one per item, or one for all items.
type baselines [][]float32

// baselinesOf returns the images on the port baselines, or the image that the parameter baseline names.
func baselinesOf(e *stages.Env, n *program.Net, baseline string) (baselines, error) {
	if e.Wired("baselines") {
		if n.Text != nil {
			if err := checkLengths("baselines", e); err != nil {
				return nil, err
			}
		}
		return normalised("baselines", e, n)
	}
	if n.Text != nil {
		return hiddenTexts(e, n, baseline)
	}
	image := make([]float32, n.Size())
	if baseline == "black" {
		for k := range image {
			image[k] = n.Black(k / (n.Height * n.Width))
		}
	}
	return baselines{image}, nil
}

// of returns the baseline of item i.
func (b baselines) of(i int) []float32 { return b[min(i, len(b)-1)] }

// sameUntil returns the end of the run of items from i on that share the baseline of i.
func (b baselines) sameUntil(i, items int) int {
	end := i + 1
	for end < items && (len(b) == 1 || slices.Equal(b[i], b[end])) {
		end++
	}
	return end
}

// longestRun returns the length of the longest run of items that share a baseline.
func (b baselines) longestRun(items int) int {
	most := 0
	for from, to := 0, 0; from < items; from = to {
		to = b.sameUntil(from, items)
		most = max(most, to-from)
	}
	return most
}
