package main

import (
	"context"
	"fmt"
	"io"
	"reflect"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

const (
	parityImages = 4
	parityBatch  = 4
)

// parity compares what stages compute on a device with what the processor computes, by the same library. Of
// "all", those count that compute on devices; stages that the net is unfit for are left out.
func parity(ctx context.Context, w io.Writer, class, net string, names []string) error {
	in, err := newInputs(net)
	if err != nil {
		return err
	}
	if in, err = in.images(parityImages); err != nil {
		return err
	}
	all := registry.Builtin()
	if names[0] == "all" {
		names = nil
		for _, s := range all.Family("") {
			if s.Device && in.serves(s) {
				names = append(names, s.Name)
			}
		}
	}
	for _, name := range names {
		s, ok := all.Lookup(name)
		if !ok {
			return fmt.Errorf("no stage is called %s", name)
		}
		in.compare(ctx, w, class, s)
	}
	return ctx.Err()
}

// compare prints how far a stage's payloads are from the processor's.
func (in inputs) compare(ctx context.Context, w io.Writer, class string, s *stages.Stage) {
	payloads := func(class string) ([]stages.Output, error) {
		slot := on(class)
		defer stagetest.Release(slot)
		e, err := in.compute(ctx, slot, s, fewer(s.NewParams()), parityBatch)
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
		failed(w, s.Name, plainly(class, err))
		return
	}
	if len(got) != len(want) {
		failed(w, s.Name, fmt.Errorf("%d payloads rather than %d", len(got), len(want)))
		return
	}
	worst := 0.0
	for i := range want {
		port := s.Output(want[i].Port)
		worst = max(worst, stages.Deviation(port.Type, got[i].Data, want[i].Data))
	}
	fmt.Fprintf(w, "compared %s %.2g %.2g\n", s.Name, worst, s.Tolerance)
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
