package attribute

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// A walk visits points of paths, of images or of values of a layer, and takes response and derivative there.
type walk struct {
	Tapped
	net   *program.Net
	slope program.Slope
}

// A visit is the response and its derivative at point k of a path. The next visit overwrites the derivative.
type visit struct {
	k        int
	response float64
	gradient []float32
}

// walk returns a walk for paths of so many points.
func (p Differentiated) walk(ctx context.Context, e *stages.Env, n *program.Net, points int) (*walk, error) {
	q, err := p.derivative(ctx, e, n)
	if err != nil {
		return nil, err
	}
	s, err := n.Slope(ctx, e.Slot, q, n.Fit(points, e.Batch))
	return &walk{p.Tapped, n, s}, err
}

// along visits the points of a path in order, a batch at a time; write writes point k.
func (w *walk) along(ctx context.Context, t program.Target, image []float32, points int,
	write func(k int, dst []float32), take func(visit)) error {
	for row := range min(w.slope.Batch, points) {
		w.slope.Set(row, t, image)
	}
	for first := 0; first < points; first += w.slope.Batch {
		rows := min(w.slope.Batch, points-first)
		for row := range rows {
			write(first+row, w.slope.Value(row))
		}
		if err := w.slope.Run(ctx); err != nil {
			return err
		}
		for row := range rows {
			take(visit{first + row, w.response(w.net, w.slope.Row(row), t), w.slope.Gradient(row)})
		}
	}
	return nil
}

// between writes the point at position t of the straight line between two values: 0 is from, 1 is to.
func between(from, to []float32, t float64, dst []float32) {
	for i, v := range from {
		dst[i] = float32(float64(v) + float64(t*(float64(to[i])-float64(v))))
	}
}
