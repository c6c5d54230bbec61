package fuse

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/runexp/runexp/stages/internal/stat"
)

// redraws is the number of resamples of the images of the second phase that tell how sure an order is.
const redraws = 1000

// estimates returns what draws the qualities of the ranked methods, which vary from draw to draw where means
// are estimates.
func (c *contest) estimates(r *rand.Rand) func() [][]float64 {
	return func() [][]float64 {
		if c.redraw == nil {
			return c.quality
		}
		return c.ranked(c.redraw.Qualities(r))
	}
}

// setStays notes in how many resamples of the images of the second phase the first place and the whole order
// of the methods stay.
func (c *contest) setStays(rank []int, smoothing stat.Smoothing, r *rand.Rand) {
	if c.redraw == nil || len(rank) < 2 {
		return
	}
	first, all := 0, 0
	draw := c.estimates(r)
	for range redraws {
		f := stat.Fuse(draw(), smoothing)
		if slices.Max(f.Part) > 0 {
			continue
		}
		same := true
		for i := range rank {
			same = same && (rank[i] == 1) == (f.Rank[i] == 1)
		}
		if same {
			first++
		}
		if slices.Equal(rank, f.Rank) {
			all++
		}
	}
	c.stays = fmt.Sprintf(" Over resamples of these the first place stays in %s of 100, and the whole order "+
		"in %s.", share(first), share(all))
}

// share writes a number of redraws in percent.
func share(n int) string { return half(float64(n) * 100 / redraws) }

// estimated says what means are of and how sure the order is, with a space before it; "" where all scores are
// as they are.
func (c *contest) estimated() string {
	if c.exact == nil {
		return ""
	}
	return c.exact.Source() + "." + c.stays
}
