package modeltest

import (
	"bytes"
	"context"
	"io"
	"math"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// Invariant fails the test unless the outputs of a model have the same bits in batches of 1, 3, 8 and 16, on
// one thread and on three.
func Invariant(t *testing.T, model stages.Data) {
	t.Helper()
	n := Net(t, model)
	const images = 5
	size := n.Size()
	x := make([]float32, images*size)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)*0.31) + math.Sin(float64(i)*0.0017) +
			math.Sin(float64(i%size)*0.013))
	}
	var want []byte
	for _, threads := range []int{1, 3} {
		for _, batch := range []int{1, 3, 8, 16} {
			if n.Batch > 0 && batch != n.Batch {
				continue
			}
			f, err := n.Forward(t.Context(), newSlot(threads), batch)
			if err != nil {
				t.Fatal(err)
			}
			var got []float32
			for from := 0; from < images; from += f.Batch {
				rows := min(f.Batch, images-from)
				for i := range rows {
					copy(f.Image(i), x[(from+i)*size:])
				}
				if err := f.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				for i := range rows {
					got = append(got, f.Row(i)...)
				}
			}
			bits := stages.NewTensor(got, len(got)).Raw
			if want == nil {
				want = bits
			}
			if !bytes.Equal(bits, want) {
				t.Errorf("batch %d on %d threads gives other bits than batch 1 on 1 thread", batch, threads)
			}
		}
	}
}

// InvariantStage fails the test unless the payloads of a stage on a port have the same bytes in batches of 1,
// 3, 8 and 16, on one thread and on three, and for items one by one.
func InvariantStage(t *testing.T, s stages.Stage, params any, port string, in map[string][]stages.Data) {
	t.Helper()
	run := func(slot stages.Slot, batch int, calls func(all []stages.Call) []stages.Call) (got [][]byte) {
		e, err := stagetest.Env(&s, in)
		if err != nil {
			t.Fatal(err)
		}
		e.Slot, e.Batch, e.Calls = slot, batch, calls(e.Calls)
		if err := s.Run(context.Background(), params, e); err != nil {
			t.Fatal(err)
		}
		for _, o := range e.Outputs {
			if o.Port == port {
				got = append(got, o.Data)
			}
		}
		return got
	}
	var want [][]byte
	for _, threads := range []int{1, 3} {
		slot := newSlot(threads)
		for _, batch := range []int{1, 3, 8, 16} {
			got := run(slot, batch, func(all []stages.Call) []stages.Call { return all })
			if want == nil {
				want = got
			}
			for i := range want {
				if !bytes.Equal(want[i], got[i]) {
					t.Errorf("%s: batch %d on %d threads gives item %d other bytes than batch 1 on 1 thread",
						s.Name, batch, threads, i)
				}
			}
		}
		for i := range want {
			alone := run(slot, 16, func(all []stages.Call) []stages.Call { return all[i : i+1] })
			if !bytes.Equal(want[i], alone[0]) {
				t.Errorf("%s: item %d alone on %d threads gives other bytes than in a batch", s.Name, i,
					threads)
			}
		}
	}
}

// A slot is a CPU with a number of threads.
type slot struct {
	threads int
	keeper  stages.Slot
}

func newSlot(threads int) *slot { return &slot{threads, stagetest.NewSlot()} }

func (s *slot) Device() stages.Device { return stages.Device{Class: "cpu", Threads: s.threads} }

func (s *slot) Keep(key string, weight int64, make func() (io.Closer, error)) (io.Closer, error) {
	return s.keeper.Keep(key, weight, make)
}

// Share does the same.
func (s *slot) Share(key string, weight int64, make func() (io.Closer, error)) (io.Closer, error) {
	return s.Keep(key, weight, make)
}
