package pipeline

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/runexp/runexp/pipeline/execute"
)

// A recorded cell is one of a real run, in the order in which they finished.
type recorded struct {
	step    string
	calls   int
	seconds float64 // of one slot
	begin   float64 // in the simulation
}

// recordedRun reads testdata/quickstart-times.txt: the stages, calls and seconds of a run of the quickstart
// on two cores, and simulates it: a slot that is free takes the next cell.
func recordedRun(t *testing.T) (cells []recorded, took float64) {
	t.Helper()
	f, err := os.Open("testdata/quickstart-times.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var free [2]float64 // when slots are
	for s := bufio.NewScanner(f); s.Scan(); {
		var c recorded
		if _, err := fmt.Sscan(s.Text(), &c.step, &c.calls, &c.seconds); err != nil {
			t.Fatal(err)
		}
		slot := 0
		if free[1] < free[0] {
			slot = 1
		}
		c.begin = free[slot]
		free[slot] += c.seconds
		cells = append(cells, c)
		took = max(took, free[slot])
	}
	return cells, took
}

// at returns what a forecast knows of a cell after so many seconds. Slots report quarters of a cell.
func (c recorded) at(now float64, earlier execute.Speed) ahead {
	quarters := math.Floor(4 * min(max((now-c.begin)/c.seconds, 0), 1))
	done := int(quarters / 4 * float64(c.calls))
	spent := execute.Speed{Calls: done, Seconds: c.seconds * float64(done) / float64(c.calls)}
	return ahead{step: c.step, calls: c.calls, spent: spent, earlier: earlier, over: done == c.calls}
}

// TestTimeLeft: after a tenth of a run, the time left is known within a factor of 2, and from then on if the
// stages were measured before. In a first run, models and stages that come late may change it.
func TestTimeLeft(t *testing.T) {
	cells, took := recordedRun(t)
	if len(cells) < 500 {
		t.Fatalf("%d cells", len(cells))
	}
	for name, earlier := range map[string]func(i int, c recorded) execute.Speed{
		"first": func(int, recorded) execute.Speed { return execute.Speed{} },
		"again": func(_ int, c recorded) execute.Speed {
			return execute.Speed{Calls: c.calls, Seconds: c.seconds}
		},
		"on a machine three times as fast": func(_ int, c recorded) execute.Speed {
			return execute.Speed{Calls: c.calls, Seconds: 3 * c.seconds}
		},
		"with more images": func(_ int, c recorded) execute.Speed {
			return execute.Speed{Calls: 2, Seconds: 2 * c.seconds / float64(c.calls)}
		},
		"half of it": func(i int, c recorded) execute.Speed {
			return execute.Speed{Calls: c.calls * (i % 2), Seconds: c.seconds}
		},
	} {
		worst := 1.0
		for part := 10; part < 95; part++ {
			now := took * float64(part) / 100
			list := make([]ahead, len(cells))
			for i, c := range cells {
				list[i] = c.at(now, earlier(i, c))
			}
			left, ok := timeLeft(list, time.Duration(now*float64(time.Second)), 2)
			ratio := left.Seconds() / (took - now)
			if !ok {
				t.Fatalf("%s: nothing is known after %d %%", name, part)
			}
			worst = max(worst, ratio, 1/ratio)
			if (name != "first" || part == 10) && (ratio > 2 || ratio < 0.5) {
				t.Errorf("%s: after %d %% the estimate is %.2f times the time left", name, part, ratio)
			}
		}
		t.Logf("%s: within a factor of %.2f", name, worst)
	}
	if _, ok := timeLeft(make([]ahead, 3), 0, 2); ok {
		t.Error("something is known of cells of which nothing is")
	}
}
