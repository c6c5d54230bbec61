// Package metric has the arithmetic of the metrics, without files, ports and networks. A map becomes one
// value per pixel (values.go, reduction.go) or per region (units.go); its pixels are ordered (values.go); a
// metric reduces the responses along that order, a curve (response.go, shares.go), to a score (mas.go,
// metric.go, removal.go, pic.go, gae.go), or compares the values with a mask (localisation.go, mass.go,
// ranking.go), with the quadrants of a mosaic (mosaic.go), or with another map (ssim.go), or measures by
// themselves how compact they are (compactness.go, mst_c.go). subsets.go has sets of regions, over which
// values are summed. masked.go has the scores of images that are masked by their maps. enlarge.go resizes
// maps of layers.
//
// All numbers are float64, and sums are taken in the order of their terms: equal inputs give equal bits
// everywhere.
package metric

// A Protocol is the way an image changes along a curve.
type Protocol int

const (
	// Insertion starts from a blurred or empty image and inserts the pixels of the original, most relevant
	// first. A large area is good.
	Insertion Protocol = iota
	// Deletion starts from the original and removes its pixels, most relevant first. A small area is good.
	Deletion
)

func (p Protocol) String() string {
	if p == Insertion {
		return "insertion"
	}
	return "deletion"
}

// Area returns the area under a curve whose points lie evenly on [0,1], by the trapezoidal rule: (Σ −
// (first+last)/2)/(n−1). It is NaN for fewer than two points.
func Area(curve []float64) float64 {
	n := len(curve)
	sum := 0.0
	for _, y := range curve {
		sum += y
	}
	if n < 2 {
		return nan
	}
	return (sum - (curve[0]+curve[n-1])/2) / float64(n-1)
}
