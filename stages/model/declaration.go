package model

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages/internal/modelfile"
)

// A declaration collects the statements of a file.
type declaration struct {
	Declared
	scale     stated // the factor of a byte, times 255
	mean, std stated
	normalise *bool // whether mean and std count; nil if that isn't stated
}

// A stated is numbers and the place of their statement.
type stated struct {
	v      []float64
	source string
}

// say records a statement, and reports whether it is the first about its subject. An earlier one stays; if
// they differ, the two are a conflict.
func (r *declaration) say(about, text, source string) bool {
	for _, s := range r.Said {
		if s.About != about {
			continue
		}
		if s.Text != text {
			r.Conflicts = append(r.Conflicts, fmt.Sprintf("%s, but %s", s, Said{about, text, source}))
		}
		return false
	}
	r.Said = append(r.Said, Said{about, text, source})
	return true
}

func (r *declaration) order(order, source string) {
	text := map[string]string{modelfile.RGB: "red comes first", modelfile.BGR: "blue comes first"}[order]
	if r.say("order", text, source) {
		r.Order, r.Channels = order, 3
	}
}

func (r *declaration) grey(source string) {
	if r.say("order", "images are grey", source) {
		r.Channels = 1
	}
}

func (r *declaration) layout(layout, source string) {
	text := map[string]string{modelfile.NCHW: "channels come before places (nchw)",
		modelfile.NHWC: "channels come behind places (nhwc)"}[layout]
	if r.say("layout", text, source) {
		r.Layout = layout
	}
}

func (r *declaration) size(h, w int, source string) {
	if r.say("size", fmt.Sprintf("images have %d×%d pixels", h, w), source) {
		r.Height, r.Width = h, w
	}
}

func (r *declaration) names(names []string, source string) {
	if len(names) == 0 {
		return
	}
	const shown = 3
	text := strings.Join(names[:min(shown, len(names))], ", ")
	if len(names) > shown {
		text += " …"
	}
	if r.say("names", fmt.Sprintf("%d classes are named %s", len(names), printable(text)), source) {
		r.Names = names
	}
}

// pixels records the inputs for a black and a white pixel.
func (r *declaration) pixels(black, white float64, source string) {
	if !(black < white) {
		return
	}
	s := white - black
	mean, std := 0-black, 1.0
	if black == -1 && white == 1 { // as in the preset half
		s, mean, std = 1, 0.5, 0.5
	}
	r.fed(s, []float64{mean}, []float64{std}, source)
}

func (r *declaration) fed(scale float64, mean, std []float64, source string) {
	d := Declared{Scale: scale, Mean: mean, Std: std}
	text := ""
	if black, white, _ := d.Range(); len(mean) == 1 && len(std) == 1 {
		text = fmt.Sprintf("pixels are fed as %.4g to %.4g", black, white)
	} else {
		text = fmt.Sprintf("pixels are fed as (pixel·%.4g − %.4g)/%.4g", scale, mean, std)
	}
	if r.say("range", text, source) {
		r.Scale, r.Mean, r.Std = scale, mean, std
	}
}

// feed computes a range from the stated mean, deviation and factor.
func (r *declaration) feed() {
	mean, std := r.mean.v, r.std.v
	sources := slices.DeleteFunc([]string{r.scale.source, r.mean.source, r.std.source},
		func(s string) bool { return s == "" })
	source := strings.Join(slices.Compact(sources), "; ")
	if r.normalise != nil && !*r.normalise {
		mean, std = nil, nil
	}
	if mean == nil && std == nil && r.scale.v == nil {
		return
	}
	given := append(slices.Clone(mean), std...)
	largest := 0.0
	for _, v := range given {
		largest = max(largest, math.Abs(v))
	}
	scale := 0.0
	switch {
	case r.scale.v != nil:
		scale = r.scale.v[0]
	case largest > 1.5: // numbers of bytes
		scale = 255
	case slices.ContainsFunc(given, func(v float64) bool { return v != 0 && v != 1 }):
		scale = 1
	default:
		return // 0 and 1 are ambiguous
	}
	if mean == nil {
		mean = []float64{0}
	}
	if std == nil {
		std = []float64{1}
	}
	if slices.ContainsFunc(std, func(v float64) bool { return !(v > 0) }) {
		return
	}
	if slices.Max(mean) > 1.01*scale { // it is subtracted from bytes, before these are multiplied
		std = slices.Clone(std)
		for i := range std {
			std[i] *= 255 / scale
		}
		scale = 255
	}
	if r.Order == modelfile.BGR { // statistics are listed in the order in which channels are fed
		mean, std = slices.Clone(mean), slices.Clone(std)
		slices.Reverse(mean)
		slices.Reverse(std)
	}
	r.fed(scale, mean, std, source)
}
