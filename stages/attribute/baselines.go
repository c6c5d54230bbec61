package attribute

import (
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// checkCompared refuses what check does, and a baseline that what is wired to baselines replaces.
func (c Common) checkCompared(baseline string, wired func(string) bool) error {
	if err := c.check(wired); err != nil {
		return err
	}
	if baseline != "zero" && wired("baselines") {
		return stages.BadField("baseline", "baseline is %s, and what is wired to baselines says already "+
			"which images are the baselines: leave baseline out", baseline)
	}
	return nil
}

// baselines are normalised images that items are compared with: one an item, or one for all of them.
type baselines [][]float32

// baselinesOf returns what is wired to baselines, or the image of the parameter baseline.
func baselinesOf(e *stages.Env, n *program.Net, baseline string) (baselines, error) {
	if e.Wired("baselines") {
		return normalised("baselines", e, n)
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

// alike returns the end of the items from i on, of so many, that have the baseline of i.
func (b baselines) alike(i, items int) int {
	end := i + 1
	for end < items && (len(b) == 1 || slices.Equal(b[i], b[end])) {
		end++
	}
	return end
}

// longest returns how many items in a row, of so many, have the same baseline at most.
func (b baselines) longest(items int) int {
	most := 0
	for from, to := 0, 0; from < items; from = to {
		to = b.alike(from, items)
		most = max(most, to-from)
	}
	return most
}
