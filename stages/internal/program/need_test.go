package program_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// A measured program: what it was said to need, and what the process took of memory when it had run thrice.
type measured struct {
	Said, Took int64
	Hidden     bool
	Batch      int
}

// measuring is the environment variable that has a process of the tests measure a program.
const measuring = "RUNEXP_TEST_NEED"

// TestNeedHolds holds that runs of programs take no more memory than 3.5 times what they were said to
// need, as package ort assumes, and 16 MB; each program is measured in a process of its own.
func TestNeedHolds(t *testing.T) {
	nets := modeltest.Nets(t, true)
	if of := os.Getenv(measuring); of != "" {
		measure(t, nets, strings.Split(of, ","))
		return
	}
	type run struct {
		net, kind string
		batch     int
	}
	var runs []run
	for _, batch := range []int{2, 16} {
		for _, kind := range []string{"forward", "gradient"} {
			for _, name := range slices.Sorted(maps.Keys(nets)) {
				runs = append(runs, run{name, kind, batch})
			}
		}
	}
	for _, r := range stagetest.Sample(t, 8, runs) {
		m := measureApart(t, r.net, r.kind, r.batch)
		if m.Took > 7*m.Said/2+16<<20 || m.Hidden {
			t.Errorf("%s, %s, %d: said %d, took %d, hidden: %v", r.net, r.kind, m.Batch, m.Said, m.Took,
				m.Hidden)
		}
		t.Logf("%-50s %-8s %2d: said %7.1f MB, took %7.1f MB, %.2f %v", r.net, r.kind, m.Batch,
			float64(m.Said)/1e6, float64(m.Took)/1e6, float64(m.Said)/float64(m.Took), m.Hidden)
	}
}

func measureApart(t *testing.T, net, kind string, batch int) (m measured) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestNeedHolds$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s,%s,%d", measuring, net, kind, batch))
	out, err := cmd.CombinedOutput()
	_, after, ok := strings.Cut(string(out), "measured ")
	line, _, _ := strings.Cut(after, "\n")
	if err != nil || !ok || json.Unmarshal([]byte(line), &m) != nil {
		t.Fatalf("%s, %s: %v: %s", net, kind, err, out)
	}
	return m
}

func measure(t *testing.T, nets map[string]model.ONNXParams, of []string) {
	batch, _ := strconv.Atoi(of[2])
	n := net(t, nets[of[0]])
	if n.Batch > 0 {
		batch = n.Batch
	}
	slot := stagetest.NewSlot()
	var run func() error
	var p *program.Program
	switch of[1] {
	case "forward":
		f, err := program.ForwardOf(t.Context(), n, slot, batch)
		if err != nil {
			t.Fatal(err)
		}
		p, run = f.Program, func() error { return f.Run(t.Context()) }
	case "gradient":
		g, err := program.GradientOf(t.Context(), n, slot,
			lower.Question{Rules: relevance.Derivative()}, batch)
		if err != nil {
			t.Fatal(err)
		}
		p, run = g.Program, func() error { return g.Run(t.Context()) }
	}
	os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	before := status(t, "VmRSS:")
	for range 3 {
		if err := run(); err != nil {
			t.Fatal(err)
		}
	}
	said, hidden := p.Need()
	m := measured{said, status(t, "VmHWM:") - before, hidden, p.Batch}
	b, _ := json.Marshal(m)
	fmt.Printf("measured %s\n", b)
}

// status returns the bytes that the system says of this process.
func status(t *testing.T, row string) (n int64) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("skipped: the system doesn't tell what a process takes")
	}
	_, after, _ := strings.Cut(string(b), row)
	fmt.Sscan(after, &n)
	return n << 10
}
