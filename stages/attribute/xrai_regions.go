package attribute

import (
	"cmp"
	"math"
	"slices"

	"github.com/runexp/runexp/stages/internal/superpixel"
)

// A region is pixels of an image, in ascending order.
type region []int32

// regionsOf returns the regions of equal labels, in the order of the labels.
func regionsOf(labels []uint32) []region {
	names := slices.Compact(slices.Sorted(slices.Values(labels)))
	out := make([]region, len(names))
	for i, l := range labels {
		k, _ := slices.BinarySearch(names, l)
		out[k] = append(out[k], int32(i))
	}
	return out
}

// candidates returns the regions that a map may be made of: those of Felzenszwalb's segments at each scale,
// made larger by a margin.
func (p XRAIParams) candidates(m superpixel.Image) []region {
	small := m.Stretched()
	for k, v := range small.Pix {
		small.Pix[k] = 2*v - 1
	}
	if p.Side > 0 {
		small = small.Zoomed(p.Side, p.Side)
	}
	var out []region
	for _, scale := range p.Scales {
		f := superpixel.Felzenszwalb{Scale: scale, Sigma: 0.8, Smallest: p.MinSize}
		labels := superpixel.Nearest(f.Labels(small), small.Height, small.Width, m.Height, m.Width)
		for _, r := range regionsOf(labels) {
			out = append(out, r.dilated(p.Dilation, m.Height, m.Width))
		}
	}
	return out
}

// dilated returns the pixels of an image of height × width that are at most radius away from one of r.
func (r region) dilated(radius, height, width int) region {
	in := make(map[int32]bool, 2*len(r))
	for _, i := range r {
		in[i] = true
	}
	grown := slices.Clone(r)
	for _, i := range r {
		y, x := int(i)/width, int(i)%width
		if x > 0 && x+1 < width && in[i-1] && in[i+1] && in[i-int32(width)] && in[i+int32(width)] {
			continue // what it reaches, a pixel at the edge reaches
		}
		for dy := -radius; dy <= radius; dy++ {
			for dx := -radius; dx <= radius; dx++ {
				v, u := y+dy, x+dx
				if dy*dy+dx*dx <= radius*radius && v >= 0 && v < height && u >= 0 && u < width {
					grown = append(grown, int32(v*width+u))
				}
			}
		}
	}
	slices.Sort(grown)
	return slices.Compact(grown)
}

// without returns the pixels of r that aren't covered, in r's memory.
func (r region) without(covered []bool) region {
	return slices.DeleteFunc(r, func(i int32) bool { return covered[i] })
}

// mean returns the mean of values over r, −∞ for no pixel.
func (r region) mean(values []float64) float64 {
	if len(r) == 0 {
		return math.Inf(-1)
	}
	sum := 0.
	for _, i := range r {
		sum += values[i]
	}
	return sum / float64(len(r))
}

// fill gives the pixels of regions, one after the other, the mean of values over those that no region before
// covers, where these are at least as many as MinPixels. What is left over gets its own mean.
func (p XRAIParams) fill(values []float64, regions []region) []float64 {
	out, covered := make([]float64, len(values)), make([]bool, len(values))
	choose := func(r region, mean float64) {
		for _, i := range r {
			out[i], covered[i] = mean, true
		}
	}
	if p.Algorithm == "fast" {
		for _, r := range byMean(regions, values) {
			if r = r.without(covered); len(r) >= p.MinPixels {
				choose(r, r.mean(values))
			}
		}
	} else {
		p.fillGreedily(values, regions, covered, choose)
	}
	var rest region
	for i, done := range covered {
		if !done {
			rest = append(rest, int32(i))
		}
	}
	choose(rest, rest.mean(values))
	return out
}

// byMean sorts regions by the mean of values, descending; of equal ones the first comes first.
func byMean(regions []region, values []float64) []region {
	type entry struct {
		region
		mean float64
	}
	list := make([]entry, len(regions))
	for k, r := range regions {
		list[k] = entry{r, r.mean(values)}
	}
	slices.SortStableFunc(list, func(a, b entry) int { return cmp.Compare(b.mean, a.mean) })
	out := make([]region, len(list))
	for k, e := range list {
		out[k] = e.region
	}
	return out
}

// fillGreedily chooses the region with the largest mean over what isn't covered, again and again.
func (p XRAIParams) fillGreedily(values []float64, regions []region, covered []bool,
	choose func(r region, mean float64)) {
	means := make([]float64, len(regions))
	for k, r := range regions {
		means[k] = r.mean(values)
	}
	for {
		best := -1
		for k, r := range regions {
			if len(r) < p.MinPixels || math.IsNaN(means[k]) {
				continue
			}
			if best < 0 || means[k] > means[best] {
				best = k
			}
		}
		if best < 0 {
			return
		}
		choose(regions[best], means[best])
		for k, r := range regions {
			if left := r.without(covered); len(left) < len(r) {
				regions[k], means[k] = left, left.mean(values)
			}
		}
	}
}
