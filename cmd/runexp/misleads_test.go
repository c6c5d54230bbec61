package main

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

// A claim of experiments/misleads compares a cell of a published table with another, or with a number. A cell
// is the ids of its row, and its column.
var (
	claimLine = regexp.MustCompile(`(?m)^# claim: (.*)$`)
	claimText = regexp.MustCompile(`^([a-z-]+): (.+) ([<>=]) (.+)$`)
)

// TestMisleads runs the experiments that docs/metrics.md and docs/methods.md refer to, and checks what they
// claim.
func TestMisleads(t *testing.T) {
	if _, err := ort.Default(); err != nil {
		stagetest.Lacks(t, err.Error())
	}
	files, err := filepath.Glob("../../experiments/misleads/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d experiments: %v", len(files), err)
	}
	w := newWorld(t, nil)
	for _, file := range stagetest.Sample(t, 4, files) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			path, err := filepath.Abs(file)
			if err != nil {
				t.Fatal(err)
			}
			out := filepath.Base(file)
			w.run(0, "run", path, "--out", out, "--store", "store", "--quiet")
			claims := claimLine.FindAllSubmatch(text, -1)
			if len(claims) == 0 {
				t.Error("it claims nothing")
			}
			for _, m := range claims {
				checkClaim(t, w.path(out), string(m[1]))
			}
		})
	}
}

// checkClaim checks a claim about the tables of a review folder.
func checkClaim(t *testing.T, folder, claim string) {
	t.Helper()
	m := claimText.FindStringSubmatch(claim)
	if m == nil {
		t.Fatalf("%q isn't TABLE: CELL < CELL", claim)
	}
	files, err := filepath.Glob(filepath.Join(folder, "tables", m[1]+"*.csv"))
	if err != nil {
		t.Fatal(err)
	}
	value := func(cell string) float64 {
		t.Helper()
		if x, err := strconv.ParseFloat(cell, 64); err == nil {
			return x
		}
		for _, file := range files {
			if x, ok := cellOf(t, file, strings.Split(cell, ", ")); ok {
				return x
			}
		}
		t.Fatalf("%s: no table %s has the cell %s", claim, m[1], cell)
		return 0
	}
	a, b := value(m[2]), value(m[4])
	if !map[string]bool{"<": a < b, ">": a > b, "=": math.Abs(a-b) < 1e-9}[m[3]] {
		t.Errorf("%s: but they are %v and %v", claim, a, b)
	}
}

// cellOf returns the number in the row that begins with all ids but the last, in the column of the last.
func cellOf(t *testing.T, file string, ids []string) (x float64, ok bool) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	keys, column := ids[:len(ids)-1], ids[len(ids)-1]
	for _, row := range rows[1:] {
		if strings.Join(row[:min(len(keys), len(row))], ", ") != strings.Join(keys, ", ") {
			continue
		}
		for k, name := range rows[0] {
			if name == column {
				x, err := strconv.ParseFloat(row[k], 64)
				return x, err == nil
			}
		}
	}
	return 0, false
}
