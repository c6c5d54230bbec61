package attribute

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// Hidden are the parameters of methods that hide pixels of the image: what replaces them.
type Hidden struct {
	Substrate string `yaml:"substrate" doc:"what replaces hidden pixels: the mean of the square around each pixel, zero after normalisation, black pixels, the mean of each channel of the image, or the images on the port substrates; of a text the mask or pad token" choices:"box-blur|zero|black|channel-mean|images|mask|pad"`
	Kernel    int    `yaml:"kernel" doc:"box-blur: side in pixels of the square whose mean a pixel takes; the image is mirrored at its border" min:"1" max:"1023"`
}

// substratesPort is the port of images that replace hidden pixels.
func substratesPort() stages.Port {
	return stages.Port{Name: "substrates", Type: stages.Images, Optional: true,
		Doc: "substrate images: what replaces the pixels of each image"}
}

// check refuses substrates that aren't wired, or are wired in vain.
func (h Hidden) check(wired func(string) bool) error {
	return stages.GoesWith("substrate", h.Substrate, "images", "substrates", wired("substrates"))
}

// reference returns the substrate as what a map is compared with, "" if it has no name there.
func (h Hidden) reference() string {
	if h.Substrate == "zero" || h.Substrate == "black" {
		return h.Substrate
	}
	return ""
}

// fill writes the substrate of item i, whose normalised image is x, to dst.
func (h Hidden) fill(e *stages.Env, i int, n *program.Net, x, dst []float32) error {
	pixels := n.Height * n.Width
	if n.Text != nil {
		return hideWords(e, i, n, "substrate", h.Substrate, x, dst)
	}
	switch h.Substrate {
	case "box-blur":
		for c := range n.Channels {
			boxBlur(x[c*pixels:(c+1)*pixels], dst[c*pixels:(c+1)*pixels], n.Height, n.Width, h.Kernel)
		}
	case "zero":
		clear(dst)
	case "black":
		for k := range dst {
			dst[k] = n.Black(k / pixels)
		}
	case "channel-mean":
		for c := range n.Channels {
			sum := 0.0
			for _, v := range x[c*pixels : (c+1)*pixels] {
				sum += float64(v)
			}
			fill(dst[c*pixels:(c+1)*pixels], float32(sum/float64(pixels)))
		}
	case "images":
		return imageOn("substrates", e, i, n, dst)
	default:
		return stages.BadField("substrate", "substrate is %s, which hides the tokens of texts: an image has "+
			"none", h.Substrate)
	}
	return nil
}

// boxBlur gives each pixel of a channel the mean of the square of that side around it, as OpenCV does: the
// image is mirrored at its border, whose pixels aren't repeated, and an even square reaches one pixel
// further up and left.
func boxBlur(x, dst []float32, height, width, side int) {
	rows := make([]float64, len(x))
	for y := range height {
		for column := range width {
			sum := 0.0
			for k := range side {
				sum += float64(x[y*width+reflected(column+k-side/2, width)])
			}
			rows[y*width+column] = sum
		}
	}
	area := float64(side) * float64(side)
	for y := range height {
		for column := range width {
			sum := 0.0
			for k := range side {
				sum += rows[reflected(y+k-side/2, height)*width+column]
			}
			dst[y*width+column] = float32(sum / area)
		}
	}
}

// reflected reflects an index into 0 … n−1, without repeating the ends: … 2 1 | 0 1 2 …
func reflected(i, n int) int {
	if n == 1 {
		return 0
	}
	i %= 2 * (n - 1)
	if i < 0 {
		i += 2 * (n - 1)
	}
	if i >= n {
		i = 2*(n-1) - i
	}
	return i
}
