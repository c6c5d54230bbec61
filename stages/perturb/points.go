package perturb

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// points returns the number of replaced units at each point of a curve over n units; longest is the image's
// longer side.
func (p Params) points(n, longest int) []int { return p.replacement().Points(n, longest) }

// replacement says what the points of the curves replace, and by what.
func (p Params) replacement() *stages.Replacement {
	r := &stages.Replacement{By: substrates[p.Substrate], Step: p.Step, Steps: p.Steps, Limit: p.Limit,
		Shares: p.Shares}
	if p.Unit != "pixel" && p.Step == 0 && p.Steps == 0 {
		r.Step = 1
	}
	return r
}

// substrates are what replaces the units of an image, in words.
var substrates = map[string]string{
	"blur":         "the blurred image",
	"zero":         "zero after normalisation",
	"black":        "black",
	"mean":         "the mean of the model's means",
	"random":       "uniform noise",
	"channel-mean": "the mean of each channel",
	"segment-mean": "the mean of the region or segment",
	"images":       "the image on the port substrates",
}

// byShare reports whether steps are equal shares of the units.
func (p Params) byShare() bool { return p.Step == 0 && p.Steps > 0 }

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
		f["step_pixels"] = strconv.Itoa(cmp.Or(p.Step, max(height, width)))
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
