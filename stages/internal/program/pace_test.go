package program_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/ort/standin"
	"github.com/runexp/runexp/stages/stagetest"
)

// A remembering slot keeps what programs found out.
type remembering struct {
	stages.Slot
	found memory
}

func (s remembering) Memory() stages.Memory {
	if s.found == nil {
		return nil
	}
	return s.found
}

type memory map[string][]byte

func (m memory) Recall(what string) ([]byte, bool) {
	b, ok := m[what]
	return b, ok
}

func (m memory) Remember(what string, found []byte) { m[what] = found }

// TestPace holds that a device gets the batch that computes most rows a second, of those that fit its memory,
// and that it is found once: another slot, as of a later run, has it from the memory.
func TestPace(t *testing.T) {
	d := standin.New(t)
	n := net(t, modeltest.Nets(t, false)["smallcnn"])
	var ran []int
	for _, tt := range []struct {
		name  string
		limit int
		most  int                    // rows that the device's memory holds
		takes func(rows int) float64 // milliseconds, of a device that fixed costs slow down
		want  int
		tries []int
	}{
		{"as large as may be", 100, 0, func(rows int) float64 { return 20 }, 100, []int{16, 32, 64}},
		{"no gain", 100, 0, func(rows int) float64 { return float64(rows) }, 15, []int{16, 32}},
		{"gain up to 32", 100, 0, func(rows int) float64 { return float64(max(rows, 32)) }, 25,
			[]int{16, 32, 64}},
		{"memory", 100, 40, func(rows int) float64 { return 20 }, 25, []int{16, 32, 64}},
		{"little memory", 100, 10, func(rows int) float64 { return 20 }, 8, []int{16}},
		{"slow", 100, 0, func(rows int) float64 { return 210 }, 15, []int{16}},
		{"few rows", 12, 0, func(rows int) float64 { return 20 }, 12, nil},
		{"bounded", 20, 0, func(rows int) float64 { return 20 }, 20, []int{16}},
	} {
		ran = nil
		d.Most = tt.most
		d.Spent = func(rows int) {
			ran = append(ran, rows)
			time.Sleep(time.Duration(tt.takes(rows) * float64(time.Millisecond)))
		}
		found := memory{}
		for run, want := range [][]int{tt.tries, nil} {
			slot := remembering{stagetest.NewSlotOn(d.Device()), found}
			ran = nil
			var c program.Curve
			var err error
			synctest.Test(t, func(t *testing.T) { // where only takes has time pass
				c, err = n.Curve(t.Context(), slot, tt.limit)
			})
			if err != nil {
				t.Fatal(err)
			}
			if c.Batch != tt.want {
				t.Errorf("%s, run %d: batch %d, want %d; %s", tt.name, run, c.Batch, tt.want,
					slices.Collect(maps.Values(found)))
			}
			var tries []int
			for _, rows := range ran {
				if d.Most == 0 || rows <= d.Most {
					tries = append(tries, rows)
				}
			}
			want = slices.DeleteFunc(slices.Clone(want), func(rows int) bool {
				return tt.most > 0 && rows > tt.most
			})
			if tries = slices.Compact(tries); !slices.Equal(tries, want) {
				t.Errorf("%s, run %d: tried %v, want %v", tt.name, run, tries, want)
			}
			stagetest.Release(slot.Slot)
		}
	}
}

// TestLostWhilePaced: that a device is lost says nothing of its best batch.
func TestLostWhilePaced(t *testing.T) {
	d := standin.New(t)
	n := net(t, modeltest.Nets(t, false)["smallcnn"])
	slot := remembering{stagetest.NewSlotOn(d.Device()), memory{}}
	defer stagetest.Release(slot.Slot)
	d.Fail = func(rows int) error {
		if rows > 16 {
			return errors.New("VK_ERROR_DEVICE_LOST")
		}
		return nil
	}
	_, err := n.Curve(t.Context(), slot, 100)
	if !errors.Is(err, stages.ErrDeviceLost) || len(slot.found) > 0 {
		t.Errorf("the error is %v; remembered: %s", err, slices.Collect(maps.Values(slot.found)))
	}
}

// TestBatchAsTold: a slot without a memory gets the batch that it is given, untried.
func TestBatchAsTold(t *testing.T) {
	d := standin.New(t)
	d.Spent = func(int) { t.Error("something ran") }
	n := net(t, modeltest.Nets(t, false)["smallcnn"])
	for _, slot := range []stages.Slot{stagetest.NewSlotOn(d.Device()),
		remembering{Slot: stagetest.NewSlotOn(d.Device())}} {
		c, err := n.Curve(t.Context(), slot, 100)
		if err != nil || c.Batch != 100 {
			t.Errorf("a batch of %d, %v", c.Batch, err)
		}
	}
}

// TestOutOfDeviceMemory holds that a batch that a device's memory doesn't hold is told with a smaller one.
func TestOutOfDeviceMemory(t *testing.T) {
	d := standin.New(t)
	d.Most = 5
	n := net(t, modeltest.Nets(t, false)["smallcnn"])
	slot := stagetest.NewSlotOn(d.Device())
	defer stagetest.Release(slot)
	f, err := n.Forward(t.Context(), slot, 12)
	if err != nil {
		t.Fatal(err)
	}
	var short *stages.BatchError
	if err := f.Run(t.Context()); !errors.Is(err, stages.ErrOutOfMemory) || !errors.As(err, &short) ||
		fmt.Sprint(short.Rows, short.Smaller) != "12 6" {
		t.Errorf("the error is %v", err)
	}
}
