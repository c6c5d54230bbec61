package progress

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/pipeline"
)

// A moment is an event and how long after the one before it happens.
type moment struct {
	after time.Duration
	pipeline.Event
}

const slow = "maps[method=rise]"

func story() []moment {
	s := time.Second
	return []moment{
		{0, pipeline.Event{Kind: pipeline.CellCached, Cell: "images"}},
		{0, pipeline.Event{Kind: pipeline.Planned, Done: 1, Total: 6}},
		{0, pipeline.Event{Kind: pipeline.CellStarted, Cell: slow, Step: "maps", Device: "cpu:0"}},
		{5 * s, pipeline.Event{Kind: pipeline.Items, Cell: slow, Done: 10, Total: 100, Device: "cpu:0"}},
		{5 * s, pipeline.Event{Kind: pipeline.Items, Cell: slow, Done: 20, Total: 100, Device: "cpu:0"}},
		{25 * s, pipeline.Event{Kind: pipeline.Items, Cell: slow, Done: 70, Total: 100, Device: "cpu:0",
			Left: 215 * s}},
		{5 * s, pipeline.Event{Kind: pipeline.Items, Cell: slow, Done: 90, Total: 100, Device: "cpu:0"}},
		{5 * s,
			pipeline.Event{Kind: pipeline.CellDone, Cell: slow, Took: 45 * s,
				Reason: "parameter masks: 100, was 50"}},
		{0, pipeline.Event{Kind: pipeline.Warning, Cell: "images", Reason: "a.jpg is damaged"}},
		{s, pipeline.Event{Kind: pipeline.CellCached, Cell: "auc", Reason: "its inputs came out the same"}},
		{0,
			pipeline.Event{Kind: pipeline.CellFailed, Cell: "curves", Took: 1234 * time.Millisecond,
				Err: errors.New("no such output")}},
		{0, pipeline.Event{Kind: pipeline.CellBlocked, Cell: "sheet", Reason: "curves"}},
		{0, pipeline.Event{Kind: pipeline.Draining}},
		{0, pipeline.Event{Kind: pipeline.Finished, Done: 3, Total: 6, Took: 46 * s}},
	}
}

// tell shows the story on a display made with a clock that follows it.
func tell(display func(Clock) Display) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	d := display(func() time.Time { return now })
	for _, m := range story() {
		now = now.Add(m.after)
		d.Show(m.Event)
	}
	d.Close()
}

func TestLines(t *testing.T) {
	var b strings.Builder
	tell(func(now Clock) Display { return Lines(&b, now) })
	want := `6 cells, 1 cached, 5 to run
[1/6] maps[method=rise]: 70 of 100 items, 2/s, about 3m35s left on cpu:0
[2/6] maps[method=rise]: done in 45s on cpu:0 (parameter masks: 100, was 50)
warning: images: a.jpg is damaged
[3/6] auc: cached (its inputs came out the same)
[4/6] curves: failed in 1.2s: no such output
[5/6] sheet: blocked by curves
stopping once the running cells are finished; interrupt again to stop at once
3 of 6 cells done in 46s, 2 of them cached
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error("-want +got:\n" + d)
	}
}

func TestQuiet(t *testing.T) {
	var b strings.Builder
	tell(func(Clock) Display { return Quiet(&b) })
	if got := strings.Count(b.String(), "\n"); got != 4 {
		t.Errorf("a quiet display wrote %d lines, want the 4 bad ones:\n%s", got, &b)
	}
}

func TestNothingToRun(t *testing.T) {
	var lines, bar strings.Builder
	e := pipeline.Event{Kind: pipeline.Planned, Done: 7, Total: 7}
	Lines(&lines, time.Now).Show(e)
	Bar(&bar, func() int { return 80 }, time.Now).Show(e)
	if lines.String() != "7 cells, nothing to run\n" || bar.String() != "" {
		t.Errorf("lines %q, bar %q", &lines, &bar)
	}
}

func TestJSON(t *testing.T) {
	var b strings.Builder
	tell(func(Clock) Display { return JSON(&b) })
	got := strings.Split(b.String(), "\n")
	want := []string{
		`{"event":"cached","cell":"images"}`,
		`{"event":"planned","done":1,"total":6}`,
		`{"event":"started","cell":"maps[method=rise]","stage":"maps","device":"cpu:0"}`,
		`{"event":"items","cell":"maps[method=rise]","done":10,"total":100,"device":"cpu:0"}`,
	}
	if d := cmp.Diff(want, got[:4]); d != "" {
		t.Error("-want +got:\n" + d)
	}
	if want := `{"event":"failed","cell":"curves","error":"no such output","seconds":1.234}`; got[10] !=
		want {
		t.Errorf("got  %s\nwant %s", got[10], want)
	}
}

func TestBar(t *testing.T) {
	var b strings.Builder
	tell(func(now Clock) Display { return Bar(&b, func() int { return 110 }, now) })
	out := b.String()
	for _, want := range []string{
		"1/6 cells (1 cached), 2 items/s",
		"3m35s left, cpu:0, maps[method=rise]",
		"2/6 cells",
		"curves: failed in 1.2s: no such output\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the bar never shows %q:\n%s", want, strings.ReplaceAll(out, "\r", "\n"))
		}
	}
	if !strings.HasSuffix(out, "3 of 6 cells done in 46s, 2 of them cached\n") {
		t.Errorf("the last line isn't the end of the run: %q", out[max(0, len(out)-100):])
	}
	if strings.Contains(out, "done in 45s") {
		t.Error("a finished cell left a line on the terminal")
	}
}

func TestBarFitsTheTerminal(t *testing.T) {
	const width = 60
	var b strings.Builder
	tell(func(now Clock) Display { return Bar(&b, func() int { return width }, now) })
	for _, part := range strings.FieldsFunc(b.String(), func(r rune) bool { return r == '\r' || r == '\n' }) {
		if n := len([]rune(strings.TrimRight(part, " "))); strings.Contains(part, "|") && n > width {
			t.Errorf("%d letters in a terminal of %d: %q", n, width, part)
		}
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		123456 * time.Nanosecond:        "120µs",
		12345 * time.Microsecond:        "12ms",
		1234 * time.Millisecond:         "1.2s",
		75*time.Second + 400*1000*1000:  "1m15s",
		3*time.Hour + 4*time.Minute + 1: "3h04m",
	} {
		if got := short(d); got != want {
			t.Errorf("short(%s) = %q, want %q", d, got, want)
		}
	}
}

func TestManyGoroutines(t *testing.T) {
	var b strings.Builder
	for _, d := range []Display{Lines(&b, time.Now), Bar(&b, func() int { return 80 }, time.Now), JSON(&b)} {
		d.Show(pipeline.Event{Kind: pipeline.Planned, Total: 50})
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() { d.Show(pipeline.Event{Kind: pipeline.CellDone, Cell: fmt.Sprint("c", i)}) })
		}
		wg.Wait()
		d.Close()
	}
	if n := strings.Count(b.String(), "[50/50]"); n != 1 {
		t.Errorf("the last line was written %d times", n)
	}
}

// The time left doesn't jump where guesses do: a burst of cheap cells after slow ones, a long one at the end.
func TestTimeLeftIsSmooth(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	tally := newTally(func() time.Time { return now })
	tally.add(pipeline.Event{Kind: pipeline.Planned, Total: 200})
	const end = 400
	var before time.Duration
	for second := 1; second < end; second++ {
		now = now.Add(time.Second)
		guess := end - second
		switch {
		case second <= 100:
			guess = 3 * second // as if half of the cells took all the time
		case second%7 == 0:
			guess = guess * 3 / 2
		case second%7 == 1:
			guess = guess * 2 / 3
		}
		tally.add(pipeline.Event{Kind: pipeline.Items, Left: time.Duration(guess) * time.Second})
		left, ok := tally.left()
		if ok != (second >= 3) {
			t.Fatalf("second %d: %v", second, ok)
		}
		if d := left - before; before > 0 && d.Abs() > before/10+2*time.Second {
			t.Errorf("second %d: %s left, before it was %s", second, left, before)
		}
		want := time.Duration(end-second) * time.Second
		if second > 200 && (left-want).Abs() > want/5+3*time.Second {
			t.Errorf("second %d: %s left, not about %s", second, left, want)
		}
		if ok {
			before = left
		}
	}
}

// Until something is known of its time, a run is as far as its cells are.
func TestShare(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	tally := newTally(func() time.Time { return now })
	tally.add(pipeline.Event{Kind: pipeline.Planned, Done: 2, Total: 10})
	tally.add(pipeline.Event{Kind: pipeline.CellDone, Cell: "c"})
	if got := tally.share(); got != 0.125 {
		t.Errorf("one of eight cells: %v", got)
	}
	now = now.Add(10 * time.Second)
	tally.add(pipeline.Event{Kind: pipeline.CellDone, Cell: "d", Left: 30 * time.Second})
	if got := tally.share(); got != 0.25 {
		t.Errorf("10 of 40 seconds: %v", got)
	}
}
