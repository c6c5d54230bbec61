package attribute

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// An emitted is the result of a backward pass, as a [passResult] of a batch.
type emitted struct {
	gradient, value standalone.Numbers   // at the layer
	shares          []standalone.Numbers // of constants, [batch, h, w]
	factor          passFactor
}

// backward emits the backward passes of a method.
func (m *emission) backward(p backwardParams) ([]emitted, error) {
	passes, err := p.backwardPasses(m.ctx, m.env, m.net)
	if err != nil {
		return nil, err
	}
	var groups []*passGroup
	var places []passPlace
	for _, pass := range passes {
		k := slices.IndexFunc(groups, func(g *passGroup) bool { return g.admits(m.ctx, m.env, m.net, pass) })
		if k < 0 {
			groups, k = append(groups, &passGroup{}), len(groups)
		}
		places = append(places, groups[k].add(pass))
	}
	in := map[*passGroup]standalone.Included{}
	for _, g := range groups {
		if in[g], err = m.passes(g); err != nil {
			return nil, err
		}
	}
	out := make([]emitted, len(passes))
	for k, place := range places {
		number := ""
		if place.index > 0 {
			number = strconv.Itoa(place.index + 1)
		}
		at := in[place.group]
		out[k] = emitted{gradient: m.Double(at.Output("derivative" + number)),
			value: m.Double(at.Output("value" + number)), factor: passes[k].factor}
		for j := 0; ; j++ {
			name := lower.SharesOutput(number, j)
			if !at.Has(name) {
				break
			}
			out[k].shares = append(out[k].shares, m.Double(at.Output(name)))
		}
	}
	return out, nil
}

// passes emits the program of passes that share a forward pass.
func (m *emission) passes(g *passGroup) (in standalone.Included, err error) {
	var also []lower.Question
	for _, pass := range g.passes[1:] {
		also = append(also, pass.question)
	}
	l, err := m.net.LowerGradient(m.ctx, m.Slot, m.Batch, g.passes[0].question, also...)
	if err != nil {
		return in, err
	}
	fed := map[string]string{"images": m.images, "targets": m.weights}
	for _, pass := range g.passes {
		name := pass.question.CountsInput()
		if pass.counts == nil || fed[name] != "" {
			continue
		}
		to := m.Fresh("runexp_counts")
		fed[name] = to
		m.later = append(m.later, func(t program.TargetNodes) error {
			if err := t.Counts(m.Draft, to, m.net, pass.counts); err != nil {
				return fmt.Errorf("%s: %w", m.Stage.Name, err)
			}
			return nil
		})
	}
	return m.include(l, fed), nil
}

// summed emits the sum of the results times their factors, as [summed].
func (m *emission) summed(results []emitted) standalone.Numbers {
	var sum standalone.Numbers
	for k, r := range results {
		v := r.gradient
		switch times := r.factor.sign(); {
		case r.factor.toOne:
			axes := make([]int, len(v.Shape)-1)
			for i := range axes {
				axes[i] = i + 1
			}
			total := v.Abs().KeepSum(axes...).Plus(m.Number(vanishing))
			v = v.Times(m.Number(times).Over(total))
		case times != 1:
			v = v.Times(m.Number(times))
		}
		if k > 0 {
			v = sum.Plus(v)
		}
		sum = v
	}
	return sum
}

// putGradient emits the map of a result's elements, or of their magnitudes.
func (m *emission) putGradient(p Tapped, result emitted, abs bool) (standalone.Numbers, error) {
	v := result.gradient
	if abs {
		v = v.Abs()
	}
	return m.put(p, v)
}

// emit emits the map of a method that propagates relevance.
func (r propagated) emit(m *emission) (out standalone.Numbers, err error) {
	results, err := m.backward(r)
	if err != nil {
		return out, err
	}
	values := m.summed(results)
	if r.propagation(m.net).positive {
		values = values.Relu()
	}
	return m.put(r.tap(), values)
}

// one emits the backward pass of a method that has a single one.
func (m *emission) one(p backwardParams) (emitted, error) {
	results, err := m.backward(p)
	if err != nil {
		return emitted{}, err
	}
	return results[0], nil
}
