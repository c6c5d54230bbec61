package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/plan"
)

// A tested is how a sentence of a paper comes out in a review folder: in how many tests it holds.
type tested struct {
	experiment string
	paperClaim
	held, tests int
}

// counted is the paper's own number where that is a count, as "11 of 12".
var counted = regexp.MustCompile(`^(\d+) of (\d+)\b`)

// verdict tells in a word or two whether it is so: in all tests, or in as large a part of them as in the
// paper.
func (c tested) verdict() string {
	theirs, all := c.tests, c.tests
	if m := counted.FindStringSubmatch(c.number); m != nil {
		theirs, _ = strconv.Atoi(m[1])
		all, _ = strconv.Atoi(m[2])
	}
	switch {
	case c.tests == 0:
		return "not tested"
	case c.held*all >= theirs*c.tests:
		return "so"
	case c.held == 0:
		return "not so"
	}
	return "in part"
}

// TestPapersClaims checks that the experiments of the papers claim what NAME.paper says that the paper
// claims, and that the README's table has what their review folders answer.
func TestPapersClaims(t *testing.T) {
	const file = "../../experiments/papers/README.md"
	const begin, end = "<!-- made by make generate: claims -->\n", "<!-- end -->\n"
	var b strings.Builder
	b.WriteString("| experiment | claim | the paper | here | | why it differs |\n|---|---|--:|--:|---|---|\n")
	for _, c := range claimsOf(t, "../../artifacts", papers) {
		if (c.verdict() != "so") != (c.differs != "") {
			t.Errorf("%s: %q is %s, in %d of %d tests: a line differs tells why, if and only if it isn't so",
				c.experiment, c.says, c.verdict(), c.held, c.tests)
		}
		fmt.Fprintf(&b, "| [%s](../../artifacts/%[1]s/README.md) | %s | %s | %d of %d | %s | %s |\n",
			c.experiment, c.says, c.number, c.held, c.tests, c.verdict(), c.differs)
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(page), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no lines %q and %q", file, begin, end)
	}
	if now := head + begin + b.String() + end + tail; now != string(page) {
		if !*update {
			t.Errorf("the table in %s isn't that of artifacts/: run make generate", file)
		} else if err := os.WriteFile(file, []byte(now), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPapersOnFewImages compares the claims of review folders made by the commands for CI with what
// testdata/papers.csv has of them: make papers makes the folders, of all experiments or a few, and names
// their parent in RUNEXP_PAPERS. Processors of another kind round otherwise, and a claim on few images may
// turn by that: there differences are only reported.
func TestPapersOnFewImages(t *testing.T) {
	const file = "testdata/papers.csv"
	folders := os.Getenv("RUNEXP_PAPERS")
	if folders == "" {
		t.Skip("make papers runs this test, on the folders that it makes")
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write([]string{"experiment", "claim", "held", "tests"})
	maker := makerOf(t, folders)
	w.Write([]string{"made by", maker, "", ""})
	var few []string
	for _, name := range papers {
		if _, err := os.Stat(filepath.Join(folders, name)); err == nil {
			few = append(few, name)
		}
	}
	for _, c := range claimsOf(t, folders, few) {
		w.Write([]string{c.experiment, c.says, strconv.Itoa(c.held), strconv.Itoa(c.tests)})
	}
	w.Flush()
	if *update {
		if len(few) < len(papers) {
			t.Fatalf("%s is of all papers, and only %q were run", file, few)
		}
		if err := os.WriteFile(file, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	report := t.Errorf
	if !strings.Contains(string(want), maker) {
		report = t.Logf
	}
	wanted := strings.Split(string(want), "\n")
	for _, line := range strings.Split(b.String(), "\n") {
		if !slices.Contains(wanted, line) {
			report("a claim comes out as %s, which isn't in %s", line, file)
		}
	}
}

// makerOf returns the kind of machine that computed the first cell, of those in review folders, that has one.
func makerOf(t *testing.T, folders string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folders, "*", "cells", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(b) {
			var cell struct {
				MadeBy string `json:"made_by"`
			}
			if err := json.Unmarshal(line, &cell); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if cell.MadeBy != "" {
				return cell.MadeBy
			}
		}
	}
	t.Fatalf("none of the review folders in %s says what machine made it", folders)
	return ""
}

// claimsOf returns the claims of the named experiments, with how they come out in review folders of these
// names.
func claimsOf(t *testing.T, folders string, names []string) (out []tested) {
	t.Helper()
	for _, name := range names {
		text, err := os.ReadFile("../../experiments/papers/" + name + ".paper")
		if err != nil {
			t.Fatal(err)
		}
		l := readPaperList(t, string(text))
		p := loadPaper(t, "../../experiments/papers/"+name+".yaml", plan.Overrides{})
		written := map[string][]string{} // by stage
		for _, c := range p.Cells {
			if list := claimsIn(c); list != nil {
				written[c.Step.Name] = list
			}
		}
		listed := map[string][]string{}
		for _, c := range l.claims {
			if c.says == "" || c.number == "" {
				t.Errorf("%s: the claim %q has no sentence or no number", name, c.claims)
			}
			listed[c.stage] = append(listed[c.stage], c.claims...)
			counts, err := readClaims(filepath.Join(folders, name), c.stage)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			one := tested{experiment: name, paperClaim: c}
			for _, text := range c.claims {
				held, tests := counts[text][0], counts[text][1]
				one.held, one.tests = one.held+held, one.tests+tests
			}
			out = append(out, one)
		}
		for stage, list := range written {
			if !slices.Equal(sorted(list), sorted(listed[stage])) {
				t.Errorf("%s: %s claims %q, and the list has %q", name, stage, list, listed[stage])
			}
			delete(listed, stage)
		}
		for stage, list := range listed {
			t.Errorf("%s: %s makes none of the claims %q", name, stage, list)
		}
		if len(l.claims) == 0 {
			t.Errorf("%s has no claim", name)
		}
	}
	return out
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// claimsIn returns the claims among the parameters of a cell.
func claimsIn(c *plan.Cell) []string {
	for _, f := range fieldsOf(c) {
		if list, ok := f.value.([]string); ok && f.Name == "claims" && len(list) > 0 {
			return list
		}
	}
	return nil
}

// readClaims returns in how many tests each claim of a stage holds, over all its cells, and how many there
// are.
func readClaims(folder, stage string) (map[string][2]int, error) {
	out := map[string][2]int{}
	file := filepath.Join(folder, "tables", stage+".claims.csv")
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no claims are published at %s", file)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	at := map[string]int{}
	for k, name := range rows[0] {
		at[name] = k
	}
	for _, row := range rows[1:] {
		held, err1 := strconv.Atoi(row[at["held"]])
		tests, err2 := strconv.Atoi(row[at["tests"]])
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		sum := out[row[at["claim"]]]
		out[row[at["claim"]]] = [2]int{sum[0] + held, sum[1] + tests}
	}
	return out, nil
}
