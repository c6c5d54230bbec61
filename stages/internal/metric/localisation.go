package metric

import (
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
)

// Relevance reports whether values are a map's relevance: finite, and not all zero.
func Relevance(values []float64) bool {
	return Defined(values) && slices.ContainsFunc(values, func(v float64) bool { return v != 0 })
}

// Defined reports whether all values are finite.
func Defined(values []float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

// MaskArea returns the number of pixels on the object.
func MaskArea(mask []uint8) (n int) {
	for _, m := range mask {
		n += inside(m)
	}
	return n
}

// Counted returns the values and the mask of the pixels that count. Where one is ignored, the others are all
// of the image.
func Counted(values []float64, mask []uint8) ([]float64, []uint8) {
	if !slices.Contains(mask, stages.Ignored) {
		return values, mask
	}
	var v []float64
	var m []uint8
	for i := range mask {
		if mask[i] != stages.Ignored {
			v, m = append(v, values[i]), append(m, mask[i])
		}
	}
	return v, m
}

// Decides reports whether a mask without ignored pixels distinguishes maps: whether some pixels are on the
// object, and others aren't. On one that is empty or full, every map has the same relevance.
func Decides(mask []uint8) bool {
	area := MaskArea(mask)
	return 0 < area && area < len(mask)
}

// A Top describes the pixels of largest value. Where pixels of equal value compete for the last places, Drawn
// of the Tied ones belong to the top, at random: a score over a Top is the mean over these draws, so that it
// doesn't depend on the order of the pixels.
type Top struct {
	Sure, SureInside int // pixels that belong to every draw, and those of them on the object
	Tied, TiedInside int // pixels that compete, and those of them on the object
	Drawn            int // how many of the tied ones belong to a draw
}

// TopOf returns the n pixels of largest value, 1 ≤ n ≤ len(values).
func TopOf(values []float64, mask []uint8, n int) (t Top) {
	last := values[Order(values)[n-1]]
	for i, v := range values {
		switch {
		case v > last:
			t.Sure++
			t.SureInside += inside(mask[i])
		case v == last:
			t.Tied++
			t.TiedInside += inside(mask[i])
		}
	}
	t.Drawn = n - t.Sure
	return t
}

// AtLeast returns the pixels that reach a threshold.
func AtLeast(values []float64, mask []uint8, threshold float64) (t Top) {
	for i, v := range values {
		if v >= threshold {
			t.Sure++
			t.SureInside += inside(mask[i])
		}
	}
	return t
}

// Anywhere returns n pixels drawn at random from an image, area of whose pixels are on the object.
func Anywhere(n, pixels, area int) Top { return Top{Tied: pixels, TiedInside: area, Drawn: n} }

func inside(m uint8) int {
	if m != 0 && m != stages.Ignored {
		return 1
	}
	return 0
}

// Hits returns the mean number of top pixels on the object.
func (t Top) Hits() float64 {
	if t.Drawn == 0 {
		return float64(t.SureInside)
	}
	return float64(t.SureInside) + float64(t.Drawn)*float64(t.TiedInside)/float64(t.Tied)
}

// IoU returns the mean intersection of the top pixels and an object of the given area, divided by their
// union. The number of drawn pixels on the object is hypergeometric; its probabilities follow from each other
// by P(i+1)/P(i) = (a−i)(d−i) / ((i+1)(b−d+i+1)), for a tied pixels on the object, b others and d draws.
func (t Top) IoU(area int) float64 {
	size := t.Sure + t.Drawn
	iou := func(i int) float64 {
		hits := t.SureInside + i
		return float64(hits) / float64(size+area-hits)
	}
	a, b, d := t.TiedInside, t.Tied-t.TiedInside, t.Drawn
	low, high := max(0, d-b), min(a, d)
	if low == high {
		return iou(low)
	}
	ratio := func(i int) float64 {
		return float64(a-i) * float64(d-i) / (float64(i+1) * float64(b-d+i+1))
	}
	// The sums start at the mode, where terms are largest, and end where they no longer count.
	mode := int(float64(d+1) * float64(a+1) / float64(a+b+2))
	mode = min(max(mode, low), high)
	const negligible = 1e-18
	total, mean := 1.0, iou(mode)
	for i, p := mode, 1.0; i < high && p > negligible; i++ {
		p *= ratio(i)
		total, mean = total+p, mean+float64(p*iou(i+1))
	}
	for i, p := mode, 1.0; i > low && p > negligible; i-- {
		p /= ratio(i - 1)
		total, mean = total+p, mean+float64(p*iou(i-1))
	}
	return mean / total
}

// RankAccuracy returns the share of the object's pixels among as many pixels of largest value, the relevance
// rank accuracy of Arras, Osman and Samek, "CLEVR-XAI", Information Fusion 2022: |P_K ∩ S| / K with K = |S|.
// It is NaN without relevance and for an empty mask.
func RankAccuracy(values []float64, mask []uint8) float64 {
	area := MaskArea(mask)
	if area == 0 || !Relevance(values) {
		return nan
	}
	return TopOf(values, mask, area).Hits() / float64(area)
}

// Pointing returns the share of the pixels of largest value that are on the object: 1 or 0 where the largest
// value is unique. It is NaN without relevance and for an empty mask.
func Pointing(values []float64, mask []uint8) float64 {
	if MaskArea(mask) == 0 || !Relevance(values) {
		return nan
	}
	return TopOf(values, mask, 1).Hits()
}

// Grown returns a mask of the pixels whose centre is at most the given number of pixels from the centre of
// one of the object's. Ignored pixels stay so.
func Grown(mask []uint8, height, width, radius int) []uint8 {
	if radius == 0 {
		return mask
	}
	// Distances along rows first; those to other rows follow from Pythagoras' theorem.
	row := make([]int, len(mask))
	far := radius + 1
	for y := range height {
		for _, back := range []bool{false, true} {
			d := far
			for k := range width {
				x := k
				if back {
					x = width - 1 - k
				}
				i := y*width + x
				if d = min(d+1, far); inside(mask[i]) == 1 {
					d = 0
				}
				if !back || d < row[i] {
					row[i] = d
				}
			}
		}
	}
	out := make([]uint8, len(mask))
	for i, m := range mask {
		if m == stages.Ignored {
			out[i] = m
		}
	}
	for y := range height {
		for v := max(0, y-radius); v <= min(height-1, y+radius); v++ {
			for x := range width {
				if d := row[v*width+x]; out[y*width+x] != stages.Ignored && d*d+(v-y)*(v-y) <= radius*radius {
					out[y*width+x] = 1
				}
			}
		}
	}
	return out
}

// BoxMask returns a mask of the pixels whose centre lies in one of the boxes, each of left, top, right and
// bottom in pixels.
func BoxMask(boxes []float64, height, width int) []uint8 {
	mask := make([]uint8, height*width)
	for ; len(boxes) >= 4; boxes = boxes[4:] {
		// Pixel x has its centre at x+½: the first with x+½ ≥ left is ⌈left−½⌉.
		left, right := first(boxes[0], width), first(boxes[2], width)
		for y := first(boxes[1], height); y < first(boxes[3], height); y++ {
			for x := left; x < right; x++ {
				mask[y*width+x] = 1
			}
		}
	}
	return mask
}

func first(edge float64, size int) int {
	return int(min(max(math.Ceil(edge-0.5), 0), float64(size)))
}
