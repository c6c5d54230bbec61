package program_test

import (
	"bytes"
	"compress/gzip"
	"encoding/gob"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// A computed is what one release of ONNX Runtime makes of a net.
type computed struct {
	Operators         map[string]int // of the simplified graph
	Answers           []float32      // of the file's own operators
	Graph, Derivative []float32      // of the simplified graph: its answers, and their derivative
	Err               string
}

// TestRuntimes compares what the library in use makes of every net with what another one made of it: which
// answers and derivatives have other bits, how far they are apart, and which operators are left of the file.
// A process opens one library only, so the other's are in a file: RUNEXP_RUNTIME_RECORD names one to write,
// RUNEXP_RUNTIME_OTHER one to compare with. RUNEXP_ZOO may name a folder of more nets.
func TestRuntimes(t *testing.T) {
	record, other := os.Getenv("RUNEXP_RUNTIME_RECORD"), os.Getenv("RUNEXP_RUNTIME_OTHER")
	if record == "" && other == "" {
		t.Skip("skipped: RUNEXP_RUNTIME_OTHER names nothing to compare with")
	}
	here := computeAll(t)
	if record != "" {
		var b bytes.Buffer
		if err := gob.NewEncoder(&b).Encode(here); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(record, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if other == "" {
		return
	}
	b, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	var there map[string]computed
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&there); err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, name := range slices.Sorted(maps.Keys(here)) {
		a, b := here[name], there[name]
		if a.Err != b.Err {
			t.Errorf("%s: the error is %q, not %q", name, a.Err, b.Err)
			continue
		}
		answers, graph, derivative := deviation(a.Answers, b.Answers), deviation(a.Graph,
			b.Graph), deviation(a.Derivative, b.Derivative)
		if answers > 0 || graph > 0 || derivative > 0 || !maps.Equal(a.Operators, b.Operators) {
			fmt.Fprintf(&table, "%s: answers %.1e, of the graph %.1e, derivative %.1e %s\n", name, answers,
				graph, derivative, moved(a.Operators, b.Operators))
		}
		if answers > 1e-5 || graph > 1e-5 || derivative > 5e-3 {
			t.Errorf("%s: answers are apart by %.1e, the graph's by %.1e, derivatives by %.1e; the graph's "+
				"and the file's by %.1e, and by %.1e in the other library",
				name, answers, graph, derivative, deviation(a.Graph, a.Answers), deviation(b.Graph,
					b.Answers))
		}
	}
	t.Logf("%d nets, of which these have other bits; relative deviations:\n%s", len(here), &table)
}

// moved says which operators the graph of one library has more of, and which of the other.
func moved(a, b map[string]int) string {
	var out []string
	for op := range a {
		if a[op] != b[op] {
			out = append(out, fmt.Sprintf("%s %d→%d", op, b[op], a[op]))
		}
	}
	for op := range b {
		if a[op] == 0 {
			out = append(out, fmt.Sprintf("%s %d→0", op, b[op]))
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func computeAll(t *testing.T) map[string]computed {
	modeltest.Runtime(t)
	paths := map[string]string{}
	for name, p := range modeltest.Nets(t, true) {
		paths[name] = p.Path
	}
	patterns := []string{filepath.Join("testdata", "nets", "*.onnx"), filepath.Join(unzipped(t), "*.onnx")}
	if zoo := os.Getenv("RUNEXP_ZOO"); zoo != "" {
		patterns = append(patterns, filepath.Join(zoo, "*.onnx"))
	}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			paths[strings.TrimSuffix(filepath.Base(f), ".onnx")] = f
		}
	}
	all := map[string]computed{}
	for name, path := range paths {
		c, err := compute(t, path)
		if err != nil {
			c.Err = err.Error()
		}
		all[name] = c
	}
	return all
}

func compute(t *testing.T, path string) (c computed, err error) {
	n, kept := net(t, model.ONNXParams{Path: path, Preset: "unit"}), stagetest.NewSlot()
	defer stagetest.Release(kept)
	slot := threaded{1, kept}
	g, err := n.Graph(t.Context(), slot, n.Fit(2, 2))
	if err != nil {
		return c, err
	}
	c.Operators = map[string]int{}
	for _, node := range g.Proto.Graph.Node {
		c.Operators[node.OpType]++
	}
	q := lower.Question{Rules: relevance.Derivative()}
	if _, err := n.Gradient(t.Context(), slot, q, 2); err != nil {
		c.Answers = classify(t, n, slot, 2, 2)
		return c, err
	}
	c.Graph, c.Derivative = differentiate(t, n, slot, q, 2, 2)
	c.Answers = classify(t, n, slot, 2, 2)
	return c, nil
}

// unzipped returns a folder of the zoo's nets.
func unzipped(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("zoo", "testdata", "*.onnx.gz"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range files {
		packed, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer packed.Close()
		r, err := gzip.NewReader(packed)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, strings.TrimSuffix(filepath.Base(name), ".gz")), b,
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
