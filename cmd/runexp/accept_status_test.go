package main

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runexp/runexp/pipeline/store"
)

// Status tells what is done, by the store, and what became of shares, whether Slurm is there or not.
func TestStatus(t *testing.T) {
	w := newCluster(t, map[string]string{"x.yaml": twoWaves})
	want := func(lines ...string) {
		t.Helper()
		if e := w.run(0, "status", "x.yaml"); e.stdout != strings.Join(lines, "\n")+"\n" {
			t.Errorf("it prints\n%swant\n%s", e.stdout, strings.Join(lines, "\n"))
		}
	}
	want("waves: 0 of 4 cells complete, 0 of 24+ items done",
		"wave 1  0 of 24 items, 0 %; 2 cells to complete, 1 to close",
		"wave 2  0 of 0+ items; 1 cells to complete, 0 to close",
		"jobs    0 running, 0 pending")
	w.calls()
	done := map[string]bool{}
	for _, share := range []string{"0/4", "1/4"} {
		w.run(0, "run", "x.yaml", "--quiet", "--share", share)
		var st status
		if err := json.Unmarshal([]byte(w.run(0, "status", "x.yaml", "--json").stdout), &st); err != nil {
			t.Fatal(err)
		}
		if st.Done <= len(done) || st.Done >= st.Items || st.Waves[0].Done != st.Done {
			t.Errorf("after share %s: %+v", share, st)
		}
		for _, s := range st.Shares {
			if done[s.Share] = true; s.State != shareEnded || s.Node == "" {
				t.Errorf("after share %s: %+v", share, s)
			}
		}
	}
	if len(done) != 2 {
		t.Errorf("shares: %v", done)
	}
	if calls := w.calls(); len(calls) != 2 {
		t.Errorf("two calls of status ask Slurm %d times: %q", len(calls), calls)
	}
	head := `{"event":"run","experiment":"waves","share":"2/4","host":"h","node":"n7","job":"41"}` + "\n"
	w.write(".runexp/runs/29990101T000000.000-1-2of4.jsonl", []byte(head))
	w.write("../calls.queue", []byte("41 RUNNING\n42 PENDING\n"))
	if e := w.run(0, "status", "x.yaml"); !strings.Contains(e.stdout, "\nshares  1 running, 2 finished\n") ||
		!strings.Contains(e.stdout, "\njobs    1 running, 1 pending\n") {
		t.Errorf("while one runs: %s", e.stdout)
	}
	var st status
	if err := json.Unmarshal([]byte(w.run(0, "status", "x.yaml", "--json").stdout), &st); err != nil {
		t.Fatal(err)
	}
	if st.Devices != 1 || st.Seconds > 0 && st.Unknown == 0 && (st.Left <= 0 || st.Speed <= 0) {
		t.Errorf("%+v", st)
	}
	w.write("../calls.queue", nil)
	if e := w.run(0, "status", "x.yaml"); !strings.HasSuffix(e.stdout, "\nshare 2/4 on n7: lost\n") {
		t.Errorf("when one is lost: %s", e.stdout)
	}
	w.write(".runexp/runs/29990102T000000.000-1-2of4.jsonl", []byte(head+
		`{"event":"failed","cell":"noisy","error":"no\nmore"}`+"\n"+`{"event":"finished"}`+"\n"))
	if e := w.run(0, "status", "x.yaml"); !strings.HasSuffix(e.stdout,
		"\nshare 2/4 on n7: failed: noisy: no\n") {
		t.Errorf("when one failed: %s", e.stdout)
	}
	w.run(0, "run", "x.yaml", "--quiet")
	want("waves: all of 4 cells complete")
}

// A share that runs by its log is lost when its file in the store has been silent for long.
func TestStatusOfFiles(t *testing.T) {
	file := func(share int, started int64, age time.Duration, end *store.ShareEnd) store.ShareInfo {
		return store.ShareInfo{Share: share, Shares: 4, Items: 30, Age: age, End: end,
			Start: &store.ShareStart{Experiment: "x", Started: started}}
	}
	ended := func(at int64) *store.ShareEnd { return &store.ShareEnd{Outcome: store.ShareOK, Ended: at} }
	files := []store.ShareInfo{
		file(0, 900, time.Minute, nil), file(1, 700, time.Hour, nil), file(2, 650, time.Hour, ended(660)),
		file(0, 600, time.Hour, ended(610)), file(3, 500, time.Hour, ended(560)),
	}
	states := withLost([]shareState{{Share: "0/4", State: shareRuns}, {Share: "1/4", State: shareRuns},
		{Share: "2/4", State: shareEnded}, {Share: "3/8", State: shareRuns}}, files)
	var got []string
	for _, s := range states {
		got = append(got, s.State)
	}
	if want := []string{shareRuns, shareLost, shareEnded, shareRuns}; !slices.Equal(got, want) {
		t.Errorf("states %q, want %q", got, want)
	}
	if got := rateOf(files[3:], time.Now()); math.Abs(got-60.0/70) > 1e-9 {
		t.Errorf("%v items a second, want %v", got, 60.0/70)
	}
}

// All shares that the newest one is of must have ended, whatever others of the experiment did.
func TestLateShares(t *testing.T) {
	of := func(share, shares int, ended bool) (s store.ShareInfo) {
		s.Share, s.Shares = share, shares
		if ended {
			s.End = &store.ShareEnd{}
		}
		return s
	}
	for want, shares := range map[string][]store.ShareInfo{
		"":                        {of(1, 2, true), of(0, 2, true), of(0, 2, false)},
		"up to 1 of 3 shares":     {of(1, 3, true), of(0, 3, true), of(2, 9, true)},
		"up to 2 of 3 shares":     {of(1, 3, false), of(2, 3, true)},
		"shares: none is visible": nil,
	} {
		if got := lateShares(shares); got != want {
			t.Errorf("late are %q, want %q", got, want)
		}
	}
}
