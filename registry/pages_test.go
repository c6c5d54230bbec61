package registry

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// Each page of docs that explains stages one by one has a frame for each stage, made of its declaration,
// between the two lines below, and the prose that follows it, written by hand.
const frameEnd = "<!-- end -->\n"

var frameBegin = regexp.MustCompile(`(?m)^<!-- made by make generate: (\S+) -->\n`)

// The names of the frames that list a page's stages, and metrics by their names.
const (
	contents    = "contents"
	metricNames = "names"
)

// prose cuts a page into its head and what follows the frame of each name.
func prose(t *testing.T, page string) (head string, after map[string]string) {
	t.Helper()
	after = map[string]string{}
	begins := frameBegin.FindAllStringSubmatchIndex(page, -1)
	for i, b := range begins {
		if i == 0 {
			head = page[:b[0]]
		}
		to := len(page)
		if i+1 < len(begins) {
			to = begins[i+1][0]
		}
		name := page[b[2]:b[3]]
		_, rest, ok := strings.Cut(page[b[1]:to], frameEnd)
		if _, twice := after[name]; twice || !ok {
			t.Fatalf("the frame %s is there twice, or doesn't end", name)
		}
		after[name] = rest
	}
	return head, after
}

// made returns a page with frames as declarations are now, and the prose that it has.
func made(t *testing.T, page, old string) string {
	t.Helper()
	head, after := prose(t, old)
	set := Builtin()
	var b strings.Builder
	b.WriteString(head)
	write := func(name, frame string) {
		rest, ok := after[name]
		if !ok { // a new stage, whose prose is to be written
			rest = "\n"
		}
		fmt.Fprintf(&b, "<!-- made by make generate: %s -->\n%s%s%s", name, frame, frameEnd, rest)
	}
	table := "| stage | title | passes for an item |\n|---|---|---|\n"
	for _, l := range set.Guide(page) {
		anchor := strings.ReplaceAll(l.Name, "/", "")
		table += fmt.Sprintf("| [%s](#%s) | %s | %s |\n", l.Name, anchor, l.Title, l.Cost)
	}
	for _, name := range slices.Sorted(maps.Keys(stages.PassQuantities)) {
		word := regexp.MustCompile(`\b` + name + `\b`)
		uses := func(s *stages.Stage) bool { return word.MatchString(s.Passes.String()) }
		if list := set.guide(page); slices.ContainsFunc(list, uses) {
			table += fmt.Sprintf("\n%s: %s\n", name, stages.PassQuantities[name])
		}
	}
	write(contents, table)
	if page == "metrics" {
		write(metricNames, namesTable())
	}
	for _, s := range set.guide(page) {
		write(s.Name, frameOf(t, s))
	}
	return b.String()
}

// namesTable lists the metrics by their names, with links to the stages that make them.
func namesTable() string {
	var b strings.Builder
	b.WriteString("| metric | here | elsewhere |\n|---|---|---|\n")
	for _, m := range Metrics() {
		here := madeBy.ReplaceAllStringFunc(m.Here, func(text string) string {
			f := madeBy.FindStringSubmatch(text)
			rest := strings.TrimPrefix(text, f[1])
			if family, _, _ := strings.Cut(f[1], "/"); !slices.Contains(guides["metrics"], family) {
				return f[1] + rest
			}
			return fmt.Sprintf("[%s](#%s)%s", f[1], strings.ReplaceAll(f[1], "/", ""), rest)
		})
		fmt.Fprintf(&b, "| %s | %s | %s |\n", m.Name, here, m.Elsewhere)
	}
	return b.String()
}

// frameOf tells what a declaration knows of a stage.
func frameOf(t *testing.T, s *stages.Stage) string {
	t.Helper()
	title, doc, _ := strings.Cut(s.Doc, "\n")
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n*%s*\n\n%s\n\n", s.Name, title, fenced(strings.TrimSpace(doc)))
	list := func(what string, items []string) {
		if len(items) > 0 {
			fmt.Fprintf(&b, "- %s: %s\n", what, strings.Join(items, "; "))
		}
	}
	var in, optional, out []string
	for _, p := range s.Inputs {
		if p.Optional {
			optional = append(optional, p.Name)
		} else {
			in = append(in, p.Name)
		}
	}
	scores := scoreTexts(s)
	for _, p := range s.Outputs {
		text := p.Name
		if m := scores[p.Name]; m != "" {
			text += ", " + m
		}
		out = append(out, text)
	}
	for _, a := range s.Definition.Aspects() {
		list(a.Name, []string{a.Text})
	}
	list("inputs", in)
	list("optional inputs", optional)
	list("outputs", out)
	if s.Definition.Randomness == "" {
		list("randomness", []string{randomness(s)})
	}
	list("passes for an item", []string{cost(s)})
	list("source", []string{fmt.Sprintf("[%[1]s](../%[1]s)", sourceOf(t, s.Name))})
	return b.String()
}

// randomness describes what is drawn, and what determines the draws.
func randomness(s *stages.Stage) string {
	by := answering(s)
	switch {
	case s.Definition.Randomness != "":
		return s.Definition.Randomness
	case s.Seeded:
		return "by the experiment's seed"
	case by != "":
		return "that of " + by
	}
	return "none"
}

// fenced puts the indented lines of a doc into fences.
func fenced(doc string) string {
	var paragraphs []string
	for _, p := range strings.Split(doc, "\n\n") {
		if strings.HasPrefix(p, "  ") {
			p = "```yaml\n" + strings.TrimPrefix(strings.ReplaceAll("\n"+p, "\n  ", "\n"), "\n") + "\n```"
		}
		paragraphs = append(paragraphs, p)
	}
	return strings.Join(paragraphs, "\n\n")
}

// sourceOf returns the file that declares a stage.
func sourceOf(t *testing.T, name string) string {
	t.Helper()
	family, _, _ := strings.Cut(name, "/")
	files, err := filepath.Glob("../stages/" + family + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\bName:\s+"` + name + `"`)
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil && named.Match(b) && !strings.HasSuffix(file, "_test.go") {
			return strings.TrimPrefix(filepath.ToSlash(file), "../")
		}
	}
	t.Fatalf("no file declares %s", name)
	return ""
}

// TestGeneratedPages checks the frames of docs/metrics.md and docs/methods.md.
func TestGeneratedPages(t *testing.T) {
	for page := range guides {
		current(t, "../docs/"+page+".md", func(old string) string { return made(t, page, old) })
	}
}

// TestPagesHaveProse checks that each stage has its paragraphs, that no frame is of a stage which isn't
// there, and that the experiment that shows where it misleads exists.
func TestPagesHaveProse(t *testing.T) {
	experiment := regexp.MustCompile(`\]\(\.\./(experiments/\S+\.yaml)\)`)
	for page := range guides {
		b, err := os.ReadFile("../docs/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		_, after := prose(t, string(b))
		names := []string{contents, metricNames}
		for _, s := range Builtin().guide(page) {
			names = append(names, s.Name)
			text := after[s.Name]
			for _, paragraph := range []string{"Formula", "Tells", "Misleads"} {
				has := strings.Contains(text, "\n**"+paragraph+".** ")
				if framed := paragraph == "Formula" && s.Definition.Formula != ""; has && framed {
					t.Errorf("docs/%s.md: the frame of %s has its formula: the paragraph stands twice", page,
						s.Name)
				} else if !has && !framed {
					t.Errorf("docs/%s.md: %s lacks the paragraph **%s.**", page, s.Name, paragraph)
				}
			}
			_, misleads, _ := strings.Cut(text, "**Misleads.**")
			links := experiment.FindAllStringSubmatch(misleads, -1)
			if len(links) == 0 {
				t.Errorf("docs/%s.md: no experiment shows where %s misleads", page, s.Name)
			}
			for _, m := range links {
				if _, err := os.Stat("../" + m[1]); err != nil {
					t.Errorf("docs/%s.md: %s refers to %s, which isn't there", page, s.Name, m[1])
				}
			}
		}
		for name := range after {
			if !slices.Contains(names, name) {
				t.Errorf("docs/%s.md has a frame %s, which isn't a stage of it", page, name)
			}
		}
	}
}

// TestExamplesHaveNumbers checks that the examples of stages write numbers as the language reads them: 0.1
// and not .1.
func TestExamplesHaveNumbers(t *testing.T) {
	short := regexp.MustCompile(`(?m)^  .*[\[ ]\.\d`)
	for _, s := range Builtin().stages {
		if line := short.FindString(s.Doc); line != "" {
			t.Errorf("%s: %s", s.Name, strings.TrimSpace(line))
		}
	}
}
