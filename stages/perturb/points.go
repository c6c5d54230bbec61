package perturb

import (
	"fmt"
	"math"
	"strconv"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// points returns the number of replaced units at each point of a curve over n units; longest is the image's
// longer side.
func (p Params) points(n, longest int) []int {
	if len(p.Shares) > 0 {
		return pointsAt(p.Shares, n)
	}
	if p.Limit > 0 {
		n = min(n, p.Limit)
	}
	var out []int
	if p.byShare() {
		for k := range p.Steps + 1 {
			out = append(out, int(math.RoundToEven(float64(n)*float64(k)/float64(p.Steps))))
		}
		return out
	}
	step := p.step(longest)
	for k := 0; k < n; k += step {
		out = append(out, k)
	}
	return append(out, n)
}

// pointsAt returns 0 and the shares of n, rounded down.
func pointsAt(shares []float64, n int) []int {
	out := []int{0}
	for _, s := range shares {
		out = append(out, int(float64(n)*s))
	}
	return out
}

// byShare reports whether steps are equal shares of the units.
func (p Params) byShare() bool { return p.Step == 0 && p.Steps > 0 }

func (p Params) step(longest int) int {
	switch {
	case p.Step > 0:
		return p.Step
	case p.Unit != "pixel":
		return 1
	}
	return longest
}

// units returns how many units an image has, 0 if that differs from image to image.
func (p Params) units(height, width int) int {
	switch p.Unit {
	case "region":
		return metric.Regions(height, width, p.Region).Count
	case "segment":
		return 0
	}
	return height * width
}

// facts returns the facts of the curves: see the package.
func (p Params) facts(d direction, in map[string]stages.Facts) (map[string]stages.Facts, error) {
	height, width, err := sizeOf(in)
	if err != nil {
		return nil, err
	}
	f := recorded(d.facts(), in)
	if in["model"]["texts"] != "" {
		f["responses"] += ",changed"
		f["unit"] = "token"
		if len(p.Shares) > 0 {
			f["shares"] = sharesText(p.Shares)
		}
		return map[string]stages.Facts{"curves": f}, nil
	}
	if p.Unit != "pixel" {
		f["unit"] = p.Unit
	}
	n := p.units(height, width)
	switch whole := p.Limit == 0 || n > 0 && p.Limit >= n; {
	case len(p.Shares) > 0:
		f["shares"] = sharesText(p.Shares)
	case !whole:
		points := p.points(n, max(height, width))
		shares := make([]float64, len(points)-1)
		for k := range shares {
			shares[k] = float64(points[k+1]) / float64(n)
		}
		f["shares"] = sharesText(shares)
	case p.Unit != "pixel":
	// Steps of unequal size have no common number of pixels.
	case !p.byShare():
		f["step_pixels"] = strconv.Itoa(p.step(max(height, width)))
	case n%p.Steps == 0:
		f["step_pixels"] = strconv.Itoa(n / p.Steps)
	}
	return map[string]stages.Facts{"curves": f}, nil
}

// sizeOf returns the size of the model's images.
func sizeOf(in map[string]stages.Facts) (height, width int, err error) {
	height, errH := strconv.Atoi(in["model"]["height"])
	width, errW := strconv.Atoi(in["model"]["width"])
	if errH != nil || errW != nil {
		return 0, 0, fmt.Errorf("the model's facts have no height or width")
	}
	return height, width, nil
}

// sharesText writes the fact shares for the points after the first.
func sharesText(shares []float64) string {
	text := "0"
	for _, s := range shares {
		text += "," + strconv.FormatFloat(s, 'g', -1, 64)
	}
	return text
}
