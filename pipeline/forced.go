package pipeline

import (
	"fmt"
	"maps"
	"math"

	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// Forced is the comparison of a forced cell's results with the stored ones.
type Forced struct {
	Cell       string
	Reproduced bool // every payload and fact is the same, bit for bit, or Within
	// Within means that other hardware or another runtime made the stored results, or a GPU, whose bits may
	// change from run to run, and that the deviation doesn't exceed Tolerance, the stage's.
	Within    bool
	Tolerance float64
	Other     string // the maker of the stored results
	// Deviation is the largest [stages.Deviation]; NaN where items or facts differ.
	Deviation float64
	// Detail is the place of the deviation, or another difference.
	Detail string
}

func (f Forced) String() string {
	of := ""
	if f.Other != "" {
		of = " from " + f.Other
	}
	switch {
	case f.Within:
		return fmt.Sprintf("within tolerance %g of %s (largest deviation %.2g)", f.Tolerance, f.Other,
			f.Deviation)
	case f.Reproduced:
		return "reproduced"
	case math.IsNaN(f.Deviation):
		return "differs" + of + ": " + f.Detail
	case math.IsInf(f.Deviation, 0):
		return "differs" + of + " in its shape, or in what is undefined: " + f.Detail
	}
	return fmt.Sprintf("differs%s with a deviation of %.3g: %s", of, f.Deviation, f.Detail)
}

// reportForced compares a forced cell's results with the stored ones.
func (r *run) reportForced(n *resolve.Cell) {
	look := r.looks[n.Index]
	if look.Reason != resolve.ForcedReason {
		return
	}
	f := Forced{Cell: n.String(), Reproduced: true}
	for p := range n.Stage.Outputs {
		if was, _, _ := look.Before.Output(p); was == n.Result(p) {
			continue
		}
		d, detail := r.difference(n, *look.Before, p)
		if f.Reproduced || d > f.Deviation || math.IsNaN(d) && !math.IsNaN(f.Deviation) {
			f.Deviation, f.Detail = d, fmt.Sprintf("port %q%s", n.Stage.Outputs[p].Name, detail)
		}
		f.Reproduced = false
	}
	other := look.Before.MadeBy()
	exact := other == n.Stored().MadeBy() && r.engine.Devices[0].Class == "cpu"
	if !f.Reproduced && n.Stage.Device && !exact {
		f.Other, f.Tolerance = other, n.Stage.Tolerance
		f.Within = f.Deviation <= f.Tolerance
		f.Reproduced = f.Within
	}
	r.forced = append(r.forced, f)
}

// difference returns the deviation of a port's results from the stored ones, and its place; NaN and the
// reason if they can't be compared.
func (r *run) difference(n *resolve.Cell, before store.Hit, port int) (largest float64, where string) {
	was, err := r.engine.Store.Listing(before, port)
	if err != nil {
		return math.NaN(), ": " + err.Error()
	}
	is, err := r.resolver.Listing(n, port)
	if err != nil {
		return math.NaN(), ": " + err.Error()
	}
	if was.Len() != is.Len() {
		return math.NaN(), fmt.Sprintf(" has %d items, had %d", is.Len(), was.Len())
	}
	if !maps.Equal(was.Facts, is.Facts) {
		return math.NaN(), " has other facts"
	}
	largest = math.NaN()
	for i := range is.Len() {
		then, now := was.At(i), is.At(i)
		if then.Digest == now.Digest {
			continue
		}
		at := ""
		if n.Stage.Outputs[port].Type.Items {
			at = fmt.Sprintf(", item %d of %d", i+1, is.Len())
		}
		old, err := r.engine.Store.Load(then.Ref)
		if err != nil {
			return math.NaN(), at + ": " + err.Error()
		}
		b, err := r.engine.Store.Load(now.Ref)
		if err != nil {
			return math.NaN(), at + ": " + err.Error()
		}
		if d := stages.Deviation(n.Stage.Outputs[port].Type, b, old); !(d <= largest) {
			largest, where = d, at
		}
	}
	return largest, where
}
