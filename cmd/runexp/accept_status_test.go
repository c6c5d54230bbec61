package main

import (
	"encoding/json"
	"fmt"
	"math"
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

// Parts of the store tell of shares that left no log here.
func TestStatusParts(t *testing.T) {
	note := func(share int, started int64, age time.Duration, end *store.PartEnd) store.PartInfo {
		return store.PartInfo{Share: share, Shares: 4, Items: 30, Age: age, End: end,
			Note: &store.PartNote{Experiment: "x", Started: started, Host: "n1", Job: "7"}}
	}
	ended := func(at int64, outcome string) *store.PartEnd {
		return &store.PartEnd{Outcome: outcome, Ended: at}
	}
	parts := []store.PartInfo{
		note(0, 900, 0, nil), note(2, 800, 0, ended(830, "maps: no more memory")),
		note(1, 700, time.Hour, nil),
		note(0, 600, 0, ended(610, store.PartDrained)), note(3, 500, 0, ended(560, store.PartOK)),
	}
	logs := []shareState{
		{Share: "3/4", State: shareRuns, began: 502, of: 4, Node: "n9"},
		{Share: "0/4", State: shareStopped, began: 601, of: 4}, // and it began again
		{Share: "2/4", State: shareEnded, began: 801, of: 4, Node: "n2"},
	}
	want := map[string]string{
		"0/4": "running n1", "1/4": "lost n1", "2/4": "failed n2 maps: no more memory", "3/4": "finished n9",
	}
	check := func(states []shareState) {
		t.Helper()
		if len(states) != len(want) {
			t.Errorf("%+v", states)
		}
		for _, s := range states {
			text := strings.TrimSpace(fmt.Sprint(s.State, " ", s.Node, " ", s.Error))
			if text != want[s.Share] {
				t.Errorf("share %s: %s, want %s", s.Share, text, want[s.Share])
			}
		}
	}
	check(withParts(logs, parts))
	want["2/4"] = strings.Replace(want["2/4"], "n2", "n1", 1)
	want["3/4"] = "finished n1"
	older, newer := shareState{Share: "0/9", of: 9, began: 650}, shareState{Share: "0/9", of: 9, began: 950}
	check(withParts([]shareState{older}, parts))
	if states := withParts([]shareState{newer}, parts); len(states) != 1 || states[0] != newer {
		t.Errorf("after another cut: %+v", states)
	}
	if got := rateOf(parts[3:], time.Now()); math.Abs(got-60.0/70) > 1e-9 {
		t.Errorf("%v items a second, want %v", got, 60.0/70)
	}
}
