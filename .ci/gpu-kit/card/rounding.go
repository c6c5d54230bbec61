package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

// roundedImages are as many as those of docs/precision.csv, whose rows the figures are.
const roundedImages = 8

// rounding compares curves in a precision of a class, a measured one or not, with the processor's in float32.
func rounding(ctx context.Context, w io.Writer, class, net, precision string) error {
	ort.Measure()
	in, err := newInputs(net)
	if err != nil {
		return err
	}
	if in, err = in.images(roundedImages); err != nil {
		return err
	}
	for _, s := range registry.Builtin().Family("perturb") {
		if ctx.Err() == nil && s.Device && stages.HasPrecision(s.NewParams()) && in.serves(s) {
			in.round(w, class, s, precision)
		}
	}
	return ctx.Err()
}

// round prints by how much a stage deviates, in each quantity.
func (in inputs) round(w io.Writer, class string, s *stages.Stage, precision string) {
	made := func(class, precision string) (stagetest.Result, error) {
		slot := on(class)
		defer stagetest.Release(slot)
		return stagetest.TryOn(slot, *s, inPrecision(fewer(s.NewParams()), precision), in.given(s))
	}
	want, err := made("cpu", stages.Float32)
	if err != nil {
		return // the net has no such curve
	}
	got, err := made(class, precision)
	if err != nil {
		failed(w, s.Name, plainly(class, err))
		return
	}
	by := map[string][]float64{} // by quantity and item
	for _, port := range s.Outputs {
		for i, b := range want.Payloads[port.Name] {
			for _, d := range stages.Rounded(port, want.Facts[port.Name], got.Payloads[port.Name][i], b) {
				by[d.Quantity] = append(by[d.Quantity], d.By)
			}
		}
	}
	for _, quantity := range slices.Sorted(maps.Keys(by)) {
		items := by[quantity]
		slices.Sort(items)
		within := items[len(items)-1-len(items)/8]
		fmt.Fprintf(w, "rounded %s %s %s %.2g\n", s.Name, quantity, precision, within)
	}
}

// inPrecision sets the precision among parameters.
func inPrecision(params any, precision string) any {
	for _, f := range stages.Fields(params) {
		if f.Name == "precision" {
			reflect.ValueOf(params).Elem().FieldByIndex(f.Index).SetString(precision)
		}
	}
	return params
}

// A deviation is by how much a stage deviates in a precision on one net: a row of docs/precision.csv without
// the tolerance.
type deviation struct {
	who, net, stage, quantity, precision string
	by                                   float64
}

// rounded enters a line of a deviation, and reports whether it is one.
func (t *table) rounded(s step, stage, rest string) bool {
	d := deviation{who: s.who, net: s.net, stage: stage}
	if _, err := fmt.Sscan(rest, &d.quantity, &d.precision, &d.by); err != nil {
		return false
	}
	t.deviations = append(t.deviations, d)
	return true
}

// precisions returns the largest deviation of each quantity, and its net.
func (t *table) precisions() (rows [][]string) {
	of := func(d deviation) string {
		return strings.Join([]string{d.who, d.precision, d.stage, d.quantity}, " ")
	}
	for _, g := range grouped(t.deviations, of) {
		worst := slices.MaxFunc(g, func(a, b deviation) int { return cmp.Compare(a.by, b.by) })
		rows = append(rows, []string{worst.who, worst.precision, worst.stage, worst.quantity,
			number(worst.by), worst.net})
	}
	return rows
}
