package superpixel

import (
	"math"
	"slices"
)

// A comb is the positions start, start + step, … along an axis.
type comb struct{ start, step int }

// combs returns the positions of about n seeds at equal distances in rows and columns. An axis that is
// shorter than the distance has one seed, and the other one as many as are left.
func combs(height, width, n int) (rows, columns comb) {
	if height*width <= n {
		return comb{0, 1}, comb{0, 1}
	}
	sizes := []float64{1, float64(height), float64(width)} // scikit-image's images have a depth of 1
	slices.Sort(sizes)
	space := sizes[0] * sizes[1] * sizes[2]
	distance := math.Pow(space/float64(n), 1./3)
	steps := []float64{distance, distance, distance}
	fits := func() bool { return sizes[0] >= steps[0] && sizes[1] >= steps[1] && sizes[2] >= steps[2] }
	for k := 0; k < 2 && !fits(); k++ {
		steps[k] = sizes[k]
		space = 1
		for _, s := range sizes[k+1:] {
			space *= s
		}
		for j := k + 1; j < 3; j++ {
			steps[j] = math.Pow(space/float64(n), 1/float64(2-k))
		}
	}
	whole := func(s float64) comb { return comb{int(math.Floor(s / 2)), int(math.RoundToEven(s))} }
	if height <= width {
		return whole(steps[1]), whole(steps[2])
	}
	return whole(steps[2]), whole(steps[1])
}
