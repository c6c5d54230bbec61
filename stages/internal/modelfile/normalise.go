package modelfile

import (
	"fmt"

	"github.com/runexp/runexp/stages"
)

// Size returns the number of elements of a normalised image.
func (s Spec) Size() int { return s.Channels * s.Height * s.Width }

// Normalise writes an image, u8 or f32 [3,H,W], into dst as the model's channels [C,H,W] in the order red,
// green, blue. The graph doesn't do it, because this way it runs once per image rather than once per batch,
// with the same bits on every device.
func (s Spec) Normalise(image stages.Tensor, dst []float32) error {
	if s.Text != nil {
		return s.text(image, dst)
	}
	if IsTokens(image) {
		return fmt.Errorf("a text of %d tokens, and the model takes images", image.Shape[1])
	}
	if len(image.Shape) != 3 || image.Shape[0] != 3 {
		return fmt.Errorf("an image of shape %v is not RGB", image.Shape)
	}
	if image.Shape[1] != s.Height || image.Shape[2] != s.Width {
		return fmt.Errorf("an image of %d×%d pixels doesn't fit the model's %d×%d", image.Shape[1],
			image.Shape[2], s.Height, s.Width)
	}
	if image.DType != stages.U8 && image.DType != stages.F32 {
		return fmt.Errorf("an image of type %s is neither u8 nor f32", image.DType)
	}
	n := s.Height * s.Width
	if s.Channels == 1 {
		values := pixels(image)
		for i := range n {
			// Rec. 601 luma. Explicit conversions keep each step's rounding on processors that could multiply
			// and add in one.
			grey := float32(0.299*values[i]) + float32(0.587*values[n+i])
			grey += float32(0.114 * values[2*n+i])
			dst[i] = s.Value(grey, 0)
		}
		return nil
	}
	if image.DType == stages.U8 {
		for c := range 3 {
			var table [256]float32
			for v := range table {
				table[v] = s.Value(float32(v)/255, c)
			}
			for i, v := range image.Raw[c*n : (c+1)*n] {
				dst[c*n+i] = table[v]
			}
		}
		return nil
	}
	for i, v := range image.Float32s() {
		dst[i] = s.Value(v, i/n)
	}
	return nil
}

// Black returns the normalised value of a black pixel in channel c.
func (s Spec) Black(c int) float32 { return s.Value(0, c) }

// White returns the normalised value of a white pixel in channel c.
func (s Spec) White(c int) float32 { return s.Value(1, c) }

// Value normalises a pixel value of channel c.
func (s Spec) Value(v float32, c int) float32 {
	v = float32(v * float32(s.Scale))
	v = float32(v - float32(s.Mean[c]))
	return v / float32(s.Std[c])
}

// pixels returns the values of an image in [0,1].
func pixels(image stages.Tensor) []float32 {
	v := image.Float32s()
	if image.DType == stages.U8 {
		for i := range v {
			v[i] /= 255
		}
	}
	return v
}
