package behaviour

// Shapley returns the Shapley value of every cell for an image with these cells, with respect to the net's
// reference, of the logit of a class less that of the other, on which alone probabilities depend. Since the
// net is a sum of gadgets, a cell's value is that in its own gadget.
func (n *Net) Shapley(cells []float64, class int) []float64 {
	return n.attribution(cells, class, func(p place, cells []float64, value valueOf) []float64 {
		return shapley(cells, n.kind.roles[p.role].reference, value)
	})
}

// Intended returns the attribution of the same number that XAI-Units' authors expect: that of Shapley, except
// that x has all of an interaction's value, and what a bit cancels is wholly attributed to both.
func (n *Net) Intended(cells []float64, class int) []float64 {
	return n.attribution(cells, class, func(p place, cells []float64, value valueOf) []float64 {
		r := n.kind.roles[p.role]
		if r.intended == nil {
			return shapley(cells, r.reference, value)
		}
		return r.intended(cells, func(cells ...float64) float64 { return value(cells) })
	})
}

// A valueOf is a gadget's value as a function of its cells.
type valueOf func(cells []float64) float64

func (n *Net) attribution(cells []float64, class int,
	of func(p place, cells []float64, value valueOf) []float64) []float64 {
	out := make([]float64, 0, len(cells))
	for i, p := range n.places {
		out = append(out, of(p, n.at(cells, i), func(cells []float64) float64 {
			hidden := n.kind.activations(cells)
			return dot(p.weights[class], hidden) - dot(p.weights[1-class], hidden)
		})...)
	}
	return out
}

// shapley returns the Shapley values of a function of one or two cells.
func shapley(cells, reference []float64, value valueOf) []float64 {
	all, none := value(cells), value(reference)
	if len(cells) == 1 {
		return []float64{all - none}
	}
	first := value([]float64{cells[0], reference[1]})
	second := value([]float64{reference[0], cells[1]})
	return []float64{((first - none) + (all - second)) / 2, ((second - none) + (all - first)) / 2}
}

// Reference returns the values of the cells of an image that says nothing.
func (n *Net) Reference() []float64 {
	var out []float64
	for _, p := range n.places {
		out = append(out, n.kind.roles[p.role].reference...)
	}
	return out
}
