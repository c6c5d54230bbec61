package chart

import (
	"image/color"
	"math"
)

// Lines returns colours for lines that are distinguishable with any colour vision (after Okabe and Ito,
// "Color Universal Design", 2008).
func Lines() []color.RGBA {
	return []color.RGBA{
		{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255},
		{86, 180, 233, 255}, {230, 159, 0, 255}, {90, 90, 90, 255}, {148, 103, 32, 255},
	}
}

// A ColourMap maps values to colours.
type ColourMap struct {
	stops  []color.RGBA // equidistant
	Signed bool         // the domain is [−1,1] rather than [0,1]
}

// Sequential is the colour map of maps without negative values, from white at 0 to dark at 1.
func Sequential() ColourMap {
	return ColourMap{stops: []color.RGBA{
		{255, 255, 255, 255}, {255, 228, 145, 255}, {250, 164, 58, 255}, {222, 76, 38, 255},
		{150, 18, 40, 255}, {62, 6, 34, 255},
	}}
}

// Diverging is the colour map of signed maps: red for evidence for the class, blue against it, white at 0.
// Both sides are equally dark.
func Diverging() ColourMap {
	return ColourMap{Signed: true, stops: []color.RGBA{
		{8, 42, 104, 255}, {33, 102, 172, 255}, {103, 166, 207, 255}, {194, 220, 236, 255},
		{255, 255, 255, 255},
		{250, 210, 190, 255}, {234, 140, 112, 255}, {190, 40, 52, 255}, {104, 4, 32, 255},
	}}
}

// RedWhiteGreen is the colour map of maps of grids in Rao, Böhle and Schiele, CVPR 2022: green for evidence
// for the class, red against it, white at 0.
func RedWhiteGreen() ColourMap {
	return ColourMap{Signed: true, stops: []color.RGBA{
		{255, 0, 0, 255}, {255, 255, 255, 255}, {0, 128, 0, 255},
	}}
}

// At returns the colour of v, clamped to the domain.
func (m ColourMap) At(v float64) color.RGBA {
	if m.Signed {
		v = (v + 1) / 2
	}
	at := min(max(v, 0), 1) * float64(len(m.stops)-1)
	i := min(int(at), len(m.stops)-2)
	t := at - float64(i)
	a, b := m.stops[i], m.stops[i+1]
	return color.RGBA{mix(a.R, b.R, t), mix(a.G, b.G, t), mix(a.B, b.B, t), 255}
}

func mix(a, b uint8, t float64) uint8 {
	return uint8(math.Round(float64(a) + float64(t*(float64(b)-float64(a)))))
}

// Blues returns a colour of heat maps, from pale at 0 to dark blue at 1, and darker throughout, so that order
// shows in print and with any colour vision.
func Blues(v float64) color.RGBA {
	return ColourMap{stops: []color.RGBA{
		{236, 242, 248, 255}, {178, 208, 230, 255}, {102, 164, 208, 255},
		{32, 102, 168, 255}, {8, 52, 108, 255},
	}}.At(v)
}
