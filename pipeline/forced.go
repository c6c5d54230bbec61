package pipeline

import (
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// Forced tells how a forced cell came out, compared with what was stored.
type Forced struct {
	Cell       string
	Reproduced bool // every payload and fact is the same, bit for bit
	// Deviation is the largest absolute difference between two numbers of its tensors; NaN where they can't
	// be compared number by number.
	Deviation float64
	// Detail says where that is, or what else differs.
	Detail string
}

func (f Forced) String() string {
	switch {
	case f.Reproduced:
		return "reproduced"
	case math.IsNaN(f.Deviation):
		return "differs: " + f.Detail
	}
	return fmt.Sprintf("differs by %.3g: %s", f.Deviation, f.Detail)
}

// reportForced compares a forced cell with what was stored.
func (r *run) reportForced(n *node) {
	if n.reason != forcedReason {
		return
	}
	f := Forced{Cell: n.String(), Reproduced: true}
	for p := range n.Stage.Outputs {
		if was, _, _ := n.before.Output(p); was == n.result(p) {
			continue
		}
		d, detail := r.difference(n, p)
		if f.Reproduced || d > f.Deviation || math.IsNaN(d) && !math.IsNaN(f.Deviation) {
			f.Deviation, f.Detail = d, fmt.Sprintf("port %q%s", n.Stage.Outputs[p].Name, detail)
		}
		f.Reproduced = false
	}
	r.forced = append(r.forced, f)
}

// difference returns by how much a port that came out different differs at most, and where, or NaN and why
// that can't be told.
func (r *run) difference(n *node, port int) (largest float64, where string) {
	was, err := r.store.Listing(*n.before, port)
	if err != nil {
		return math.NaN(), ": " + err.Error()
	}
	is, err := r.listing(n, port)
	if err != nil {
		return math.NaN(), ": " + err.Error()
	}
	if was.Len() != is.Len() {
		return math.NaN(), fmt.Sprintf(" has %d items, had %d", is.Len(), was.Len())
	}
	largest, where = math.NaN(), " has other facts"
	for i := range is.Len() {
		before, now := was.At(i), is.At(i)
		if before.Digest == now.Digest {
			continue
		}
		at := ""
		if n.Stage.Outputs[port].Type.Items {
			at = fmt.Sprintf(", item %d of %d", i+1, is.Len())
		}
		d, err := r.deviation(n.Stage.Outputs[port].Type.Form, before.Ref, now.Ref)
		if err != nil {
			return math.NaN(), at + ": " + err.Error()
		}
		if !(d <= largest) {
			largest, where = d, at
		}
	}
	return largest, where
}

// deviation returns the largest absolute difference of two tensors.
func (r *run) deviation(form stages.Form, was, is store.Ref) (float64, error) {
	if form != stages.FormTensor {
		return 0, fmt.Errorf("%d bytes, other than the %d stored", is.Len, was.Len)
	}
	var tensors [2]stages.Tensor
	for i, ref := range []store.Ref{was, is} {
		b, err := r.store.Load(ref)
		if err == nil {
			tensors[i], err = stages.DecodeTensor(b)
		}
		if err != nil {
			return 0, err
		}
	}
	a, b := tensors[0], tensors[1]
	if a.DType != b.DType || !slices.Equal(a.Shape, b.Shape) {
		return 0, fmt.Errorf("%s %v, was %s %v", b.DType, b.Shape, a.DType, a.Shape)
	}
	x, y := a.Float64s(), b.Float64s()
	largest := 0.0
	for i := range x {
		if math.IsNaN(x[i]) != math.IsNaN(y[i]) {
			return 0, fmt.Errorf("it's undefined in one of the two")
		}
		if x[i] != y[i] && !math.IsNaN(x[i]) {
			largest = max(largest, math.Abs(x[i]-y[i]))
		}
	}
	return largest, nil
}
