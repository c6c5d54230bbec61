package scores

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/stat"
	"github.com/runexp/runexp/stages/interval"
)

// An Exact is what a [Cell] of cheap scores has besides: by item the exact one, NaN where there is none, and
// in which phase it was measured.
type Exact struct {
	Values []float64
	Phases []interval.Phase
	seeds  [][]float64 // by seed and item, the scores of which Values are means; nil without seeds
}

// AddExact gives cells the exact scores of some items, of cells with the same coordinates: of the items of
// the pilot, and of those of the second phase. Cells may be parts of those on axes in by, each with some of
// their items: of a sample of all, those in a part are a sample of the part, of a size that chance decides
// (Cochran 1977, section 2.12).
func AddExact(ctx context.Context, cells []*Cell, pilot, second []stages.Data, by ...string) error {
	// Where all items were measured exactly at once, they are in both.
	if err := add(ctx, cells, second, interval.Second, by...); err != nil {
		return err
	}
	if err := add(ctx, cells, pilot, interval.Pilot, by...); err != nil {
		return err
	}
	for _, c := range cells {
		if len(by) == 0 && !slices.Contains(c.Exact.Phases, interval.Second) && !c.Sample().Whole() {
			return fmt.Errorf("there are no exact scores of %v", c.Coord)
		}
	}
	return nil
}

// AddPilot gives cells the exact scores of the items of the pilot.
func AddPilot(ctx context.Context, cells []*Cell, pilot []stages.Data) error {
	return add(ctx, cells, pilot, interval.Pilot)
}

// outside returns coordinates that aren't on some axes.
func outside(coord []stages.Coord, axes []string) []stages.Coord {
	return slices.DeleteFunc(slices.Clone(coord), func(c stages.Coord) bool {
		return slices.Contains(axes, c.Axis)
	})
}

func add(ctx context.Context, cells []*Cell, exact []stages.Data, phase interval.Phase, by ...string) error {
	measured, err := Load(ctx, exact)
	if err != nil {
		return err
	}
	for _, c := range cells {
		if c.Exact == nil {
			c.Exact = newExact(c)
		}
		for i := range measured {
			if !slices.Equal(outside(c.Coord, by), measured[i].Coord) {
				continue
			}
			if err := c.Exact.add(c, &measured[i], phase); err != nil {
				return err
			}
		}
	}
	return nil
}

// newExact returns no exact scores of a cell.
func newExact(c *Cell) *Exact {
	none := func() []float64 { return slices.Repeat([]float64{math.NaN()}, len(c.Scores.Values)) }
	x := &Exact{Values: none(), Phases: make([]interval.Phase, len(c.Scores.Values))}
	for range c.seeds {
		x.seeds = append(x.seeds, none())
	}
	return x
}

// add adds the exact scores of a phase to those of a cell. Of several seeds all have the same items: a mean
// over the seeds that drew an item would be another number.
func (x *Exact) add(c, exact *Cell, phase interval.Phase) error {
	if exact.seeds != nil && c.seeds != nil && len(exact.seeds) != len(c.seeds) {
		return fmt.Errorf("%v has scores of %d seeds, and exact ones of %d", c.Coord, len(c.seeds),
			len(exact.seeds))
	}
	for _, l := range exact.seeds {
		if len(l.Values) != len(exact.Scores.Values) {
			return fmt.Errorf("the seeds of %v have exact scores of different %s: name the axis of the "+
				"seeds in a parameter, or leave it out of over", c.Coord, c.Items)
		}
	}
	for i := range x.Values {
		v, ok := exact.Scores.Of(c.Scores, i)
		if !ok {
			continue
		}
		x.Values[i], x.Phases[i] = v, phase
		for k := range x.seeds {
			of := exact.Scores // the same for all seeds
			if exact.seeds != nil {
				of = exact.seeds[k]
			}
			x.seeds[k][i], _ = of.Of(c.Scores, i)
		}
	}
	return nil
}

// Sample returns the cell's scores: its defined ones, or cheap ones of all items with the exact ones of some.
func (c *Cell) Sample() interval.Sample {
	if c.Exact == nil {
		v, _ := c.Defined()
		return interval.Sample{Exact: v}
	}
	return interval.Sample{Cheap: c.Scores.Values, Exact: c.Exact.Values, Phases: c.Exact.Phases}
}

// samples returns, cell by cell, the scores of the images that all have, undefined where one of them is, and
// of which items of the first cell. It returns false if an image has exact scores of some cells alone; a cell
// with those of all images has the phases of the others.
func samples(cells ...*Cell) (out []interval.Sample, items []int, ok bool) {
	out = make([]interval.Sample, len(cells))
	var partly []int
	for k, c := range cells {
		if !c.Sample().Whole() {
			partly = append(partly, k)
		}
	}
	at := make([]int, len(cells))
	defined := func(of func(c *Cell) []float64) bool {
		for k, c := range cells {
			if math.IsNaN(of(c)[at[k]]) {
				return false
			}
		}
		return true
	}
	for i := range cells[0].Scores.Values {
		for k, c := range cells {
			at[k] = c.Scores.position(cells[0].Scores, i)
		}
		if slices.Contains(at, -1) {
			continue
		}
		phase := interval.Pilot
		for n, k := range partly {
			if p := cells[k].Exact.Phases[at[k]]; n == 0 {
				phase = p
			} else if p != phase {
				return nil, nil, false
			}
		}
		items = append(items, i)
		cheap, exact := defined(cheapOf), phase != interval.Cheap && defined(exactOf)
		for k, c := range cells {
			x, y := math.NaN(), math.NaN()
			if cheap {
				x = c.Scores.Values[at[k]]
			}
			if exact {
				y = c.Exact.Values[at[k]]
			}
			s := &out[k]
			s.Cheap, s.Exact, s.Phases = append(s.Cheap, x), append(s.Exact, y), append(s.Phases, phase)
		}
	}
	return out, items, true
}

func cheapOf(c *Cell) []float64 { return c.Scores.Values }
func exactOf(c *Cell) []float64 { return c.Exact.Values }

// Samples returns, by competitor, the scores of the images that have a defined one of every competitor, as
// Shared does, or cheap and exact ones. A missing cell leaves none.
func (m *Case) Samples() []interval.Sample {
	if !slices.Contains(m.Cells, nil) {
		if all, _ := common(m.Cells); len(all) > 0 {
			return all
		}
	}
	return make([]interval.Sample, len(m.Cells))
}

// Paired returns the scores of two cells for the images that have a defined one of both. It returns false if
// there are none, if an id stands for different images, or if images have exact scores of one cell alone.
func Paired(a, b *Cell) (x, y interval.Sample, ok bool) {
	if Mixed(a.Scores, b.Scores) {
		return x, y, false
	}
	if a.Exact == nil {
		both := Shared([]*List{a.Scores, b.Scores})
		x.Exact, y.Exact = both[0], both[1]
	} else if both, _, ok := samples(a, b); ok {
		x, y = both[0], both[1]
	}
	return x, y, x.Len() > 0
}

// Differences returns x − y, at the resolution of the scores, as [stat.Differences] does.
func Differences(x, y interval.Sample) interval.Sample {
	return interval.Sample{Cheap: stat.Differences(x.Cheap, y.Cheap),
		Exact: stat.Differences(x.Exact, y.Exact), Phases: x.Phases}
}

// Sampled returns a's scores minus b's, as Differences does, of scores or of cheap and exact ones.
func (m *Case) Sampled(a, b int) interval.Sample { return Differences(m.both(a, b)) }

// both is Both for scores or cheap and exact ones.
func (m *Case) both(a, b int) (x, y interval.Sample) {
	if m.Cells[a] != nil && m.Cells[b] != nil {
		if pair, _ := common([]*Cell{m.Cells[a], m.Cells[b]}); len(pair) > 0 {
			return pair[0], pair[1]
		}
	}
	return x, y
}

// HolmAgainst returns by competitor the p-value of the signed-rank test against the
// reference, corrected by Holm for these tests alone; NaN for the reference and where there is no cell.
func (m *Case) HolmAgainst(reference int) []float64 {
	p := make([]float64, len(m.Cells))
	for i := range p {
		if p[i] = math.NaN(); i != reference {
			p[i] = stat.WilcoxonOf(m.Sampled(i, reference)).P
		}
	}
	return stat.Holm(p)
}
