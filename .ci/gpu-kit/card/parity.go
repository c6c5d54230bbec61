package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
)

const (
	parityImages = 4
	parityBatch  = 4
)

// parity compares what stages compute on a device with what the processor computes, by the same library. Of
// "all", those count that compute on devices; stages that the net is unfit for are left out.
func parity(ctx context.Context, w io.Writer, class, net string, size int, names []string) error {
	in, err := newInputs(net, size)
	if err != nil {
		return err
	}
	if in, err = in.images(parityImages); err != nil {
		return err
	}
	set := registry.Builtin()
	for _, family := range []string{"attribute", "perturb"} {
		for _, s := range set.Family(family) {
			if slices.Contains(names, s.Name) || names[0] == "all" && s.Device && in.serves(s) {
				in.compare(ctx, w, class, s)
			}
		}
	}
	return ctx.Err()
}

// compare prints how far a stage's payloads are from the processor's.
func (in inputs) compare(ctx context.Context, w io.Writer, class string, s *stages.Stage) {
	payloads := func(class string) ([]stages.Output, error) {
		sl := on(class)
		defer sl.release()
		e, err := in.compute(ctx, sl, s, fewer(s.NewParams()), parityBatch)
		if err != nil {
			return nil, err
		}
		return e.Outputs, nil
	}
	want, err := payloads("cpu")
	if err != nil {
		return // the net has no layer of the kind, say
	}
	got, err := payloads(class)
	if err != nil {
		failed(w, s.Name, err)
		return
	}
	worst := 0.0
	for i := range want {
		d, err := difference(got[i].Data, want[i].Data)
		if err != nil {
			failed(w, s.Name, err)
			return
		}
		worst = max(worst, d)
	}
	fmt.Fprintf(w, "compared %s %.2g %.2g\n", s.Name, worst, s.Tolerance)
}

// difference returns the largest difference between two tensors, as a share of the largest magnitude wanted.
// That of NaN is infinite.
func difference(got, want []byte) (float64, error) {
	g, err := stages.DecodeTensor(got)
	if err != nil {
		return 0, err
	}
	w, err := stages.DecodeTensor(want)
	if err != nil {
		return 0, err
	}
	a, b := g.Float64s(), w.Float64s()
	if len(a) != len(b) {
		return 0, fmt.Errorf("%d numbers rather than %d", len(a), len(b))
	}
	far, most := 0.0, 0.0
	for i := range b {
		d := math.Abs(a[i] - b[i])
		if math.IsNaN(d) && !(math.IsNaN(a[i]) && math.IsNaN(b[i])) {
			d = math.Inf(1)
		}
		if !math.IsNaN(d) {
			far = max(far, d)
		}
		if !math.IsNaN(b[i]) {
			most = max(most, math.Abs(b[i]))
		}
	}
	if far == 0 {
		return 0, nil
	}
	return far / most, nil
}

// fewer reduces the numbers of passes among parameters, which parity doesn't depend on.
func fewer(params any) any {
	for _, f := range stages.Fields(params) {
		limit, ok := map[string]int64{"steps": 8, "samples": 8, "masks": 16}[f.Name]
		if v := reflect.ValueOf(params).Elem().FieldByIndex(f.Index); ok && v.Kind() == reflect.Int &&
			v.Int() > limit {
			v.SetInt(limit)
		}
	}
	return params
}
