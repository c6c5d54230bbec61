package main

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/registry"
)

// A placed method is one of a net's leaderboard by one metric.
type placed struct {
	method                string
	rank, mean, low, high float64
	p                     float64 // of the difference from the best; NaN for the best
}

// leads reports whether the method is the best, or can't be told apart from it.
func (m placed) leads() bool { return !(m.p <= 0.05) }

// measured are the methods of a review folder's board, by net and metric, the best first, and for how many
// images they are ranked.
func measured(t *testing.T, folder string) (boards map[[2]string][]placed, images map[[2]string]string) {
	t.Helper()
	rows := readTable(t, filepath.Join(folder, "tables/board.details.csv"))
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	boards, images = map[[2]string][]placed{}, map[[2]string]string{}
	for _, row := range rows[1:] {
		at := func(name string) string {
			i, ok := column[name]
			if !ok {
				t.Fatalf("%s has no column %q", folder, name)
			}
			return row[i]
		}
		m := placed{at("method"), number(t, at("rank")), number(t, at("mean")), number(t, at("low")),
			number(t, at("high")), math.NaN()}
		if p := at("p"); p != "" {
			m.p = number(t, p)
		}
		key := [2]string{at("net"), at("metric")}
		boards[key] = append(boards[key], m)
		images[key] = at("common n")
	}
	for _, list := range boards {
		slices.SortFunc(list, func(a, b placed) int {
			return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.method, b.method))
		})
	}
	return boards, images
}

// A leadTable writes which methods lead, as tables of the page and as rows of the file.
type leadTable struct {
	page strings.Builder
	file [][]string
	uses map[string]string // what experiments write for a method
	all  string            // how many images there are
}

// leadColumns are the columns of the file.
const leadColumns = "family,net,metric,better,images,leaders,leads,method,uses,mean,low,high"

// pageLeaders is the number of methods that a row of the page lists; the file has as many.
const pageLeaders = 6

// add writes a net's leaderboard by a metric.
func (w *leadTable) add(family, net, metric, images string, board []placed) {
	better, arrow := "higher", "↑"
	if board[0].mean < board[len(board)-1].mean {
		better, arrow = "lower", "↓"
	}
	var leaders []string
	random, count := "", 0
	for _, m := range board {
		if m.leads() {
			count++
		}
	}
	for _, m := range board {
		text := fmt.Sprintf("%.3f [%.3f, %.3f]", m.mean, m.low, m.high)
		leads := "no"
		if m.leads() && len(leaders) < pageLeaders {
			leads, leaders = "yes", append(leaders, m.method+" "+text)
		}
		if m.method == "random" {
			random = text
		}
		if leads == "yes" || m.method == "random" {
			row := []string{family, net, metric, better, images, fmt.Sprint(count), leads, m.method,
				w.uses[m.method]}
			for _, v := range []float64{m.mean, m.low, m.high} {
				row = append(row, fmt.Sprintf("%.3f", v))
			}
			w.file = append(w.file, row)
		}
	}
	if metric += " " + arrow; images != w.all {
		metric += ", " + images + " images"
	}
	others := cmp.Or(strings.Join(leaders[1:], ", "), "none")
	if more := count - len(leaders); more > 0 {
		others += fmt.Sprintf(", and %d more", more)
	}
	fmt.Fprintf(&w.page, "| %s | %s | %s | %s |\n", metric, leaders[0], others, random)
}

// methodLines are the methods of an experiment, by their ids, as it writes them.
func methodLines(t *testing.T, file string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^    ([\w-]+): +(\{uses: attribute/.*\})$`).
		FindAllStringSubmatch(page(t, file), -1) {
		found[m[1]] = m[2]
	}
	return found
}

// TestDocsArchitectures checks that docs/architectures.csv, of which runexp new quotes, and the tables of
// docs/architectures.md are what artifacts/architectures measured, and that each net is of its family.
func TestDocsArchitectures(t *testing.T) {
	runtimeOrSkip(t)
	p, err := plan.Load("../../experiments/architectures.yaml", registry.Builtin(), plan.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	boards, images := measured(t, "../../artifacts/architectures")
	if want := len(p.Order["net"]) * len(p.Order["metric"]); len(boards) != want {
		t.Fatalf("%d cases are measured, not %d", len(boards), want)
	}
	w := leadTable{uses: methodLines(t, "experiments/architectures/base.yaml")}
	w.all = images[[2]string{p.Order["net"][0], p.Order["metric"][0]}]
	w.file = [][]string{strings.Split(leadColumns, ",")}
	last := ""
	for _, net := range p.Order["net"] {
		file := "../../experiments/quickstart/" + net + ".onnx"
		found, err := registry.Inspect(t.Context(), file, registry.Look{})
		if err != nil {
			t.Fatal(err)
		}
		family := p.Families["net"][net]
		if !slices.Contains(found.Families, family) {
			t.Errorf("%s is one of %q, not of %q", net, found.Families, family)
		}
		if family != last {
			fmt.Fprintf(&w.page, "### %s\n\n", family)
		}
		last = family
		fmt.Fprintf(&w.page, "`%s`:\n\n| metric | best | can't be told apart from it | random map |\n"+
			"|---|---|---|---|\n", net)
		for _, metric := range p.Order["metric"] {
			key := [2]string{net, metric}
			w.add(family, net, metric, images[key], boards[key])
		}
		w.page.WriteString("\n")
	}
	var rows bytes.Buffer
	if err := csv.NewWriter(&rows).WriteAll(w.file); err != nil {
		t.Fatal(err)
	}
	current(t, "docs/architectures.csv", rows.String())
	const begin, end = "<!-- made by make generate: architectures -->\n", "<!-- end -->\n"
	text := page(t, "docs/architectures.md")
	head, rest, ok1 := strings.Cut(text, begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("docs/architectures.md has no lines %q and %q", begin, end)
	}
	current(t, "docs/architectures.md", head+begin+w.page.String()+end+tail)
}

// current holds a file to its content, or with -update writes it.
func current(t *testing.T, file, content string) {
	t.Helper()
	switch {
	case page(t, file) == content:
	case !*update:
		t.Errorf("%s isn't what artifacts/architectures has: run make generate", file)
	default:
		if err := os.WriteFile("../../"+file, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDocsOwnNet follows docs/architectures.md with the mixer in the place of timm's net: methods of
// attention fail, and the others are published.
func TestDocsOwnNet(t *testing.T) {
	runtimeOrSkip(t)
	w := newWorld(t, nil)
	w.drawPhotos(6, 64, false)
	_, rest, _ := strings.Cut(page(t, "docs/architectures.md"), "```yaml\n# own.yaml\n")
	own, rest, ok := strings.Cut(rest, "```")
	if !ok || !strings.Contains(rest, "\nrunexp run own.yaml --partial\n") {
		t.Fatal("docs/architectures.md has no own.yaml, or doesn't run it")
	}
	w.write("own.yaml", []byte(own))
	w.write("experiments/architectures/base.yaml", []byte(page(t, "experiments/architectures/base.yaml")))
	w.write("swin.onnx", []byte(page(t, "experiments/quickstart/mixer.onnx")))
	e := w.run(exitFailed, "run", "own.yaml", "--partial", "--out", "out", "--set", "axes.net.swin.size=64",
		"--set", "axes.net.swin.preset=half", "--only", "method=random,saliency,generic-attention")
	text := e.stdout + e.stderr + w.read("out/README.md")
	bad := lacking(text, []string{"the model has no attention of tokens to tokens", "\n| swin | saliency | "})
	if bad != nil {
		t.Errorf("%q in\n%s", bad, text)
	}
}
