// Package behaviour makes nets whose true attribution is known, after XAI-Units (Lee et al., 2025). A [Net]
// is a sum of gadgets, small functions of one or two cells of the image, all of one behaviour, such as a
// logical and (net.go). The behaviours are in kinds.go, and onnx.go writes a net as an ONNX model. images.go
// draws images, and truth.go has their true attribution.
//
// A cell is a square patch of one grey; its feature is the grey after normalisation, from −1, black, to 1,
// white, and 0 is the grey in between. All numbers are small multiples of powers of two, so that a net makes
// no rounding error on an image of cells, and its kinks are where they are said to be.
package behaviour

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
)

// Classes is the number of a net's outputs.
const Classes = 2

// A Params identifies a net.
type Params struct {
	Kind  string // of [Kinds]
	Grid  int    // cells along each side; even
	Patch int    // pixels along each side of a cell; a power of two
	Seed  int    // of the weights
}

// Check returns an error for parameters that no net has.
func (p Params) Check() error {
	switch {
	case kindOf(p.Kind) == nil:
		return fmt.Errorf("no behaviour is called %q", p.Kind)
	case p.Grid < 2 || p.Grid%2 != 0:
		return fmt.Errorf("grid is %d: the cells of a row are taken two by two, so it must be even", p.Grid)
	case p.Patch < 1 || p.Patch&(p.Patch-1) != 0:
		return fmt.Errorf("patch is %d: a power of two is needed, for means without rounding", p.Patch)
	}
	return nil
}

// Side returns the height and width of the images in pixels.
func (p Params) Side() int { return p.Grid * p.Patch }

// rand returns a generator for one purpose.
func (p Params) rand(purpose string, numbers ...int) *rand.Rand {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%d %d\n", purpose, p.Kind, p.Grid, p.Seed)
	for _, n := range numbers {
		binary.Write(h, binary.LittleEndian, int64(n)) // a hash takes all
	}
	return rand.New(rand.NewChaCha8([32]byte(h.Sum(nil))))
}

// A Net is a sum of gadgets. The gadget at place p reads the cells p·n to p·n+n−1, counted row by row, of the
// n cells that its kind takes.
type Net struct {
	Params
	kind   *kind
	places []place
	bias   float64 // of the first logit; the second has its negative
}

// A place is a gadget's role, and its weights in the logit of each class.
type place struct {
	role    int
	weights [Classes][]float64 // of the hidden units
}

// New returns the net with these parameters.
func New(p Params) (*Net, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	n := &Net{Params: p, kind: kindOf(p.Kind)}
	gadgets := p.Grid * p.Grid / n.kind.cells
	n.places = make([]place, gadgets)
	r := p.rand("weights")
	// A power of two near 4/√gadgets, so that logits have about the size of 1.
	scale := math.Exp2(math.Round(math.Log2(4 / math.Sqrt(float64(gadgets)))))
	for i := range n.places {
		role := n.kind.roles[r.IntN(len(n.kind.roles))]
		first, second := draw(r, scale), draw(r, scale)
		switch none := r.IntN(4) == 0; {
		case i == 0:
			role = n.kind.roles[0] // which distinguishes the classes, so that no net is constant
		case none:
			first, second = 0, 0 // no influence
		}
		unit := role.unit(first, second)
		n.places[i] = place{role: role.id, weights: [Classes][]float64{unit, negated(unit)}}
		if role.common {
			n.places[i].weights[1] = unit
		}
		n.bias -= dot(unit, role.mean)
	}
	return n, nil
}

// draw returns a weight: 4/16 to 16/16 of scale, of either sign.
func draw(r *rand.Rand, scale float64) float64 {
	w := float64(4+r.IntN(13)) / 16 * scale
	if r.IntN(2) == 0 {
		return -w
	}
	return w
}

func negated(x []float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = -v
	}
	return out
}

// Features returns the number of cells.
func (n *Net) Features() int { return n.Grid * n.Grid }

// Logits returns the outputs for the values of all cells.
func (n *Net) Logits(cells []float64) (z [Classes]float64) {
	z = [Classes]float64{n.bias, -n.bias}
	for i, p := range n.places {
		hidden := n.kind.activations(n.at(cells, i))
		for c := range z {
			z[c] += dot(p.weights[c], hidden)
		}
	}
	return z
}

// at returns the cells of gadget i.
func (n *Net) at(cells []float64, i int) []float64 {
	return cells[i*n.kind.cells : (i+1)*n.kind.cells]
}

// dot returns the sum of products; an empty b stands for zeros.
func dot(a, b []float64) (sum float64) {
	for i := range b {
		sum += float64(a[i] * b[i])
	}
	return sum
}
