package program_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/ort/standin"
	"github.com/runexp/runexp/stages/stagetest"
)

// A metered slot adds up passes, programs, and time of runs in which these were compiled.
type metered struct {
	stages.Slot
	forward, backward, programs int
	late                        time.Duration
}

func (m *metered) Passed(forward, backward int) {
	m.forward, m.backward = m.forward+forward, m.backward+backward
}

func (m *metered) Compiled(programs int, late time.Duration) {
	m.programs, m.late = m.programs+programs, m.late+late
}

// TestCompiled checks that a program counts once as compiled, and what its first run takes longer than the
// second one, on a device that compiles shaders in it.
func TestCompiled(t *testing.T) {
	d := standin.New(t)
	first := true
	d.Spent = func(int) {
		took := 200 * time.Millisecond
		if first {
			took += 3 * time.Second
		}
		first = false
		time.Sleep(took)
	}
	n := net(t, modeltest.Nets(t, false)["smallcnn"])
	slot := &metered{Slot: stagetest.NewSlotOn(d.Device())}
	defer stagetest.Release(slot.Slot)
	var c program.Curve
	for range 2 { // the second time it is found
		var err error
		if c, err = n.Curve(t.Context(), slot, 4); err != nil {
			t.Fatal(err)
		}
	}
	image := make([]float32, n.Size())
	c.Set(image, image, make([]float32, n.Height*n.Width))
	synctest.Test(t, func(t *testing.T) { // where only Spent has time pass
		for k := range 3 {
			if err := c.Run(t.Context(), []int{0, 1, 2, 3}[:k+1]); err != nil {
				t.Fatal(err)
			}
			if want := 3 * time.Second * time.Duration(min(k, 1)); slot.late != want {
				t.Errorf("%d runs: %v of them compiled, want %v", k+1, slot.late, want)
			}
		}
	})
	if slot.programs != 1 || slot.forward != 1+2+3 || slot.backward != 0 {
		t.Errorf("%d programs, %d forward and %d backward passes; want 1, 6 and 0", slot.programs,
			slot.forward, slot.backward)
	}
}
