// Package metric holds the arithmetic of the metrics, free of files, ports and networks: curves and maps go
// in, numbers come out. All of it is float64, and a sum is always taken in the order of its terms, so that
// equal inputs give equal bits wherever they are computed.
package metric

// A Protocol is the way an image changes along a curve.
type Protocol int

const (
	// Insertion starts from a blurred or empty image and brings the pixels of the original back, most
	// relevant first. A large area is good.
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
