package attribute

import "math"

// resized returns a map [h,w] at another size: nearest repeats values, bilinear
// mixes the four around, with the centres of pixels at halves and the border's
// values beyond the border (what PyTorch calls align_corners=False).
func resized(values []float64, h, w, height, width int, how string) []float64 {
	if h == height && w == width {
		return values
	}
	out := make([]float64, height*width)
	rows, columns := between(h, height, how), between(w, width, how)
	for y, r := range rows {
		upper, lower := values[r.a*w:(r.a+1)*w], values[r.b*w:(r.b+1)*w]
		for x, c := range columns {
			out[y*width+x] = lerp(lerp(upper[c.a], upper[c.b], c.weight), lerp(lower[c.a], lower[c.b], c.weight), r.weight)
		}
	}
	return out
}

// between returns what each of to pixels takes from the from along an axis.
func between(from, to int, how string) []tap {
	out := make([]tap, to)
	for i := range out {
		if how == "nearest" {
			k := i * from / to
			out[i] = tap{k, k, 0}
			continue
		}
		at := math.Max(0, (float64(i)+0.5)*float64(from)/float64(to)-0.5)
		a := min(int(at), from-1)
		out[i] = tap{a, min(a+1, from-1), at - float64(a)}
	}
	return out
}
