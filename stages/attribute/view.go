package attribute

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// A view runs a model on one image after the other, or on a layer's value, with places masked.
type view struct {
	*program.Program
	height, width int
	tokens        bool // whether places are tokens
	// set sets item i.
	set func(i int)
	// mask returns the mask of a row [height,width]: 1 shows a place, 0 hides it.
	mask func(row int) []float32
	// run computes the outputs of the batch.
	run func(ctx context.Context) error
}

// view returns the view of the items at the layer. Hidden places have the baseline's value; masks returns the
// number of masks, given the number of places.
func (p Tapped) view(ctx context.Context, e *stages.Env, n *program.Net, baseline string,
	masks func(height, width int) int) (view, error) {
	if p.Layer == "input" && (n.Text == nil || baseline != "zero") { // hidden tokens of a text are others
		images, err := normalised("images", e, n)
		if err != nil {
			return view{}, err
		}
		from, err := baselinesOf(e, n, baseline)
		if err != nil {
			return view{}, err
		}
		m, err := n.Masked(ctx, e.Slot, n.Fit(masks(n.Height, n.Width), e.Batch))
		set := func(i int) { m.Set(images[i], from.of(i)) }
		return view{m.Program, n.Height, n.Width, false, set, m.Mask, m.Run}, err
	}
	x, err := p.ends(ctx, e, n, baseline)
	if err != nil {
		return view{}, err
	}
	at, err := p.planesOf(n, make([]float64, len(x.from.of(0))), x.shape)
	if err != nil {
		return view{}, err
	}
	name, err := p.layer(ctx, e, n)
	if err != nil {
		return view{}, err
	}
	m, err := n.MaskedLayer(ctx, e.Slot, name, "places", placeMask,
		n.Fit(masks(at.height, at.width), e.Batch))
	set := func(i int) { m.Set(x.to[i], x.from.of(i), x.images[i]) }
	mask := func(row int) []float32 {
		all := m.Mask(row)
		others := len(all) - at.pixels() // tokens without a place stay visible
		fill(all[:others], 1)
		return all[others:]
	}
	return view{m.Program, at.height, at.width, len(x.shape) == 2, set, mask, m.Run}, err
}

// viewed are the places of an item that may be hidden: those of the view, or the tokens of a text that aren't
// special.
type viewed struct {
	height, width int
	mask          []float32 // of these places
	words         []int     // of a text: where they are in the view
	all           int       // places of the view
}

// places returns the places of item i.
func (v view) places(e *stages.Env, i int, n *program.Net) (viewed, error) {
	if n.Text == nil {
		return viewed{v.height, v.width, make([]float32, v.height*v.width), nil, v.height * v.width}, nil
	}
	t, err := program.TokensOf(e, i)
	words := t.Words()
	return viewed{1, len(words), make([]float32, len(words)), words, v.height * v.width}, err
}

// write writes the mask of the places to a view's.
func (v viewed) write(mask []float32) {
	if v.words == nil {
		copy(mask, v.mask)
		return
	}
	fill(mask, 1)
	for k, place := range v.words {
		mask[place] = v.mask[k]
	}
}

// spread returns a value for each place of the view, given those of the places: 0 for the others.
func (v viewed) spread(values []float64) []float64 {
	if v.words == nil {
		return values
	}
	out := make([]float64, v.all)
	for k, place := range v.words {
		out[place] = values[k]
	}
	return out
}

// placeMask returns the shape of a mask with one number per place, given the shape of a layer's value:
// feature maps or tokens.
func placeMask(value []int) []int {
	if len(value) == 3 {
		return []int{1, value[1], value[2]}
	}
	return []int{value[0], 1}
}

// putView puts the map of item i, given a value for each place of a view.
func (p Tapped) putView(e *stages.Env, i int, n *program.Net, values []float64, v view) {
	if p.Layer == "input" {
		putMap(e, i, p.reduced(values, 1, v.height, v.width))
		return
	}
	p.putPlane(e, i, n, p.flat(values, len(values)), planes{height: v.height, width: v.width}, "bilinear")
}
