package attribute

import (
	"context"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// A straight is the straight paths of all items from their baselines to their images, or from one value of a
// layer to another.
type straight struct {
	Tapped
	ends
	net  *program.Net
	path program.Path // of derivatives
	line program.Line // of outputs
}

// straight returns the paths, of which so many points are derived and so many classified at once.
func (p Differentiated) straight(ctx context.Context, e *stages.Env, n *program.Net, baseline string, derived,
	classified int) (*straight, error) {
	s := &straight{Tapped: p.Tapped, net: n}
	q, err := p.derivative(ctx, e, n)
	if err != nil {
		return nil, err
	}
	if s.path, err = n.Path(ctx, e.Slot, q, n.Fit(derived, e.Batch)); err != nil {
		return nil, err
	}
	if s.line, err = n.Line(ctx, e.Slot, q.Layer, n.Fit(classified, e.Batch)); err != nil {
		return nil, err
	}
	s.ends, err = p.ends(ctx, e, n, baseline)
	return s, err
}

// responses returns the explained output at positions of item i's path.
func (s *straight) responses(ctx context.Context, i int, t program.Target, at []float64) ([]float64, error) {
	s.line.Set(s.from.of(i), s.to[i], s.images[i])
	out := make([]float64, 0, len(at))
	for some := range slices.Chunk(at, s.line.Batch) {
		if err := s.line.Run(ctx, some); err != nil {
			return nil, err
		}
		for row := range some {
			out = append(out, s.response(s.net, s.line.Row(row), t))
		}
	}
	return out, nil
}

// integral returns the weighted sum of the derivatives at positions of item i's path, times the difference of
// its ends.
func (s *straight) integral(ctx context.Context, i int, t program.Target, at, weights []float64) ([]float64,
	error) {
	from, to := s.from.of(i), s.to[i]
	s.path.Set(t, from, to, s.images[i])
	for k := 0; k < len(at); k += s.path.Batch {
		last := min(k+s.path.Batch, len(at))
		if err := s.path.Run(ctx, at[k:last], weights[k:last]); err != nil {
			return nil, err
		}
	}
	values := make([]float64, len(to))
	for k, sum := range s.path.Sum() {
		values[k] = float64(sum) * (float64(to[k]) - float64(from[k]))
	}
	return values, nil
}
