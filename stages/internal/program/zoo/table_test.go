package zoo

import (
	"encoding/csv"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const tableFile = "zoo.csv"

// A row of the table is what came of a net as an exporter wrote it.
type row struct {
	Net, Exporter string
	Opset         int
	Batch         string // "free", or the number of images at once
	// Problem says why there is no derivative, or what is wrong with it.
	Problem string
	// Error is the derivative's relative distance from that in double precision, Single that of PyTorch's in
	// single precision.
	Error, Single float64
	// Share is how much of the derivative passes residual branches, see share; NaN for nets without any.
	Share float64
	// Nodes and Operators are those of the simplified graph.
	Nodes     int
	Operators []string
	// Middle and Final are names and shapes of the layers called so.
	Middle, Final string
}

var head = []string{"net", "exporter", "opset", "batch", "problem", "relative error", "PyTorch's in float32",
	"residual share", "nodes", "operators", "middle", "final"}

func (r row) cells() []string {
	number := func(v float64, format string) string {
		if v == 0 || math.IsNaN(v) {
			return ""
		}
		if format == "" {
			return figure(v)
		}
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	count := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	return []string{
		r.Net, r.Exporter, count(r.Opset), r.Batch, r.Problem, number(r.Error, ""), number(r.Single, ""),
		number(r.Share, "f"), count(r.Nodes), strings.Join(r.Operators, " "), r.Middle, r.Final,
	}
}

// figure writes a relative error.
func figure(v float64) string { return strconv.FormatFloat(v, 'e', 1, 64) }

func parseRow(t *testing.T, c []string) row {
	t.Helper()
	number := func(s string) float64 {
		if s == "" {
			return 0
		}
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatalf("%s: %v", tableFile, err)
		}
		return v
	}
	r := row{Net: c[0], Exporter: c[1], Opset: int(number(c[2])), Batch: c[3], Problem: c[4],
		Error: number(c[5]), Single: number(c[6]),
		Share: number(c[7]), Nodes: int(number(c[8])), Operators: strings.Fields(c[9]), Middle: c[10],
		Final: c[11]}
	if c[7] == "" {
		r.Share = math.NaN()
	}
	return r
}

type table []row

func readTable(t *testing.T) table {
	t.Helper()
	f, err := os.Open(tableFile)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(lines[0], head) {
		return nil // of another form: all rows are to be made again
	}
	var out table
	for _, l := range lines[1:] {
		out = append(out, parseRow(t, l))
	}
	return out
}

// with returns the table with a row in its place.
func (all table) with(r row) table {
	all = slices.DeleteFunc(slices.Clone(all), func(o row) bool { return o.key() == r.key() })
	all = append(all, r)
	slices.SortFunc(all, func(a, b row) int { return strings.Compare(a.key(), b.key()) })
	return all
}

func (r row) key() string { return r.Net + " " + r.Exporter }

func (all table) write(t *testing.T) {
	t.Helper()
	f, err := os.Create(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	w := csv.NewWriter(f)
	lines := [][]string{head}
	for _, r := range all {
		lines = append(lines, r.cells())
	}
	if err := w.WriteAll(lines); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
