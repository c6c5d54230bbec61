package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/runexp/runexp/stages/stagetest"
)

// A fence is a block of code in a page of docs/.
type fence struct {
	info  string // what stands after the backticks: the language, and what tests read
	body  string
	line  int // of the first line of body, from 1
	start int // of body in the page
}

var fences = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")

func fencesOf(text string) (list []fence) {
	for _, m := range fences.FindAllStringSubmatchIndex(text, -1) {
		list = append(list, fence{info: text[m[2]:m[3]], body: text[m[4]:m[5]], start: m[4],
			line: 1 + strings.Count(text[:m[4]], "\n")})
	}
	return list
}

// A docPage is a page of docs/ whose examples are tried in a folder. With -update it gets the output that its
// commands have now.
type docPage struct {
	*world
	file    string
	text    string // of the page
	updated strings.Builder
	upTo    int // of text, in updated
}

func openPage(t *testing.T, name string) *docPage {
	t.Helper()
	file := filepath.Join("../../docs", name)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, nil)
	w.env = append(w.env, "NO_COLOR=1", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	return &docPage{world: w, file: file, text: string(b)}
}

// replace has body stand in the place of a fence's body.
func (p *docPage) replace(f fence, body string) {
	p.updated.WriteString(p.text[p.upTo:f.start] + body)
	p.upTo = f.start + len(f.body)
}

// close writes the page with what was replaced.
func (p *docPage) close() {
	p.Helper()
	if p.upTo == 0 {
		return
	}
	p.updated.WriteString(p.text[p.upTo:])
	if err := os.WriteFile(p.file, []byte(p.updated.String()), 0o666); err != nil {
		p.Fatal(err)
	}
}

// console runs the commands of a fence, which begin with "$ ", and compares what they print, on stdout and on
// stderr, with the lines that follow them.
func (p *docPage) console(f fence) {
	p.Helper()
	shell, err := exec.LookPath("sh")
	if err != nil {
		p.Fatal(err)
	}
	var path []string
	if stagetest.Race() {
		dir, err := undetected()
		if err != nil {
			p.Fatal(err)
		}
		path = []string{"PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH")}
	}
	var now strings.Builder
	for _, part := range strings.Split("\n"+f.body, "\n$ ")[1:] {
		command, want, _ := strings.Cut(strings.TrimSuffix(part, "\n")+"\n", "\n")
		cmd := p.prepare(shell, "-c", command)
		cmd.Env = append(cmd.Env, path...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			p.Fatal(err)
		}
		got := string(out)
		if code := cmd.ProcessState.ExitCode(); code != exitDone {
			got += fmt.Sprintf("# exit code %d\n", code)
		}
		differs := unlike(want, got)
		if differs != "" && !*update {
			p.Errorf("%s:%d: %q prints\n%s\n%s", p.file, f.line, command, got, differs)
		}
		if differs != "" {
			want = shortened(got)
		}
		now.WriteString("$ " + command + "\n" + want)
	}
	if *update {
		p.replace(f, now.String())
	}
}

// shortened returns an output as pages show it, without what is beyond the last column.
func shortened(out string) string {
	lines := strings.Split(out, "\n")
	for i, line := range lines {
		if r := []rune(line); len(r) > maxColumns {
			lines[i] = string(r[:maxColumns-1]) + "…"
		}
	}
	return strings.Join(lines, "\n")
}

var (
	durations = regexp.MustCompile(`\b([0-9.]+(h|m|s|ms|µs))+\b`)
	numbers   = regexp.MustCompile(`-?[0-9]+\.[0-9]+`)
	spaces    = regexp.MustCompile(`[ \t]+`)
)

// decimals is how far a number of an output may be from the one in a text: on another processor the last
// digits are others, and so are those of ranks by nearly equal scores.
const decimals = 0.005

// unlike returns how an output differs from the one in a text, "" if it doesn't. A line "…" of the text
// stands for any lines, "…" at the end of a line for any rest. Durations aren't compared, nor are the widths
// of spaces.
func unlike(want, got string) string {
	w, g := strings.Split(strings.TrimSpace(want), "\n"), strings.Split(strings.TrimSpace(got), "\n")
	for i, j := 0, 0; ; i, j = i+1, j+1 {
		if i < len(w) && w[i] == "…" {
			if i++; i == len(w) {
				return ""
			}
			for j < len(g) && !likeLine(w[i], g[j]) {
				j++
			}
		}
		switch {
		case i == len(w) && j == len(g):
			return ""
		case i == len(w):
			return fmt.Sprintf("and the text lacks the line %q", g[j])
		case j == len(g):
			return fmt.Sprintf("and not the line %q", w[i])
		case !likeLine(w[i], g[j]):
			return fmt.Sprintf("the line %q, where the text has %q", g[j], w[i])
		}
	}
}

func likeLine(want, got string) bool {
	if start, cut := strings.CutSuffix(want, "…"); cut {
		r := []rune(got)
		want, got = start, string(r[:min(len(r), utf8.RuneCountInString(start))])
	}
	plain := func(line string) string {
		line = durations.ReplaceAllString(strings.TrimSpace(line), "T")
		return numbers.ReplaceAllString(spaces.ReplaceAllString(line, " "), "N")
	}
	if plain(want) != plain(got) {
		return false
	}
	w := numbers.FindAllString(durations.ReplaceAllString(want, ""), -1)
	g := numbers.FindAllString(durations.ReplaceAllString(got, ""), -1)
	for i := range w {
		a, _ := strconv.ParseFloat(w[i], 64)
		b, _ := strconv.ParseFloat(g[i], 64)
		if math.Abs(a-b) > decimals {
			return false
		}
	}
	return true
}

// TestUnlike holds the comparison of outputs to what it must tell apart.
func TestUnlike(t *testing.T) {
	const text = "first\n…\n[3/8] maps: done in 1.25s\nmean 0.7431 of 8\n"
	for got, same := range map[string]bool{
		"first\n[3/8] maps:  done in 12ms\nmean 0.7442 of 8":      true,
		"first\na\nb\n[3/8] maps: done in 2m3s\nmean 0.7431 of 8": true,
		"first\n[3/8] maps: done in 12ms\nmean 0.75 of 8":         false,
		"first\n[3/8] maps: done in 12ms\nmean 0.7431 of 9":       false,
		"first\n[4/8] maps: done in 12ms\nmean 0.7431 of 8":       false,
		"[3/8] maps: done in 12ms\nmean 0.7431 of 8":              false,
		"first\n[3/8] maps: done in 12ms\nmean 0.7431 of 8\nmore": false,
		"first\n[3/8] maps: done in 12ms":                         false,
	} {
		if differs := unlike(text, got); (differs == "") != same {
			t.Errorf("%q: %q", got, differs)
		}
	}
}

var links = regexp.MustCompile(`\]\(([^):# ]+)(#[^)]*)?\)`)

// TestDocs holds the pages of docs/ to a width that terminals show, and their links to files that exist.
func TestDocs(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 3 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	for _, file := range pages {
		name := "docs/" + filepath.Base(file)
		text := page(t, name)
		info, generated := "", false // of the fence; of the part
		for i, line := range strings.Split(text, "\n") {
			if after, ok := strings.CutPrefix(line, "```"); ok {
				info, _, _ = strings.Cut(after, " ")
				continue
			}
			generated = (generated || strings.HasPrefix(line, "<!-- made by")) && line != "<!-- end -->"
			// Rows of tables and what is quoted or generated can't be broken.
			row := generated || strings.HasPrefix(line, "|") || info == "text" || info == "csv"
			if n := utf8.RuneCountInString(line); n > maxColumns && !row {
				t.Errorf("%s:%d: %d columns, more than %d", name, i+1, n, maxColumns)
			}
		}
		for _, m := range links.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
			if _, err := os.Stat(filepath.Join("../../docs", m[1])); err != nil {
				t.Errorf("%s links to %s, which isn't there", name, m[1])
			}
		}
	}
}

// needsGit skips a test of commands that a machine may lack.
func needsGit(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
}

// TestDocsReview checks that what docs/review.md quotes is in the quickstart's folder, and that it has every
// exit code.
func TestDocsReview(t *testing.T) {
	text, quotes := page(t, "docs/review.md"), 0
	for _, f := range fencesOf(text) {
		kind, file, _ := strings.Cut(f.info, " ")
		if kind == "text" {
			file = "README.md"
		}
		published := page(t, "artifacts/quickstart/"+file)
		for _, line := range strings.Split(strings.TrimSpace(f.body), "\n") {
			quotes++
			if !strings.Contains(published, line) {
				t.Errorf("docs/review.md:%d: the quickstart's %s doesn't have %q", f.line, file, line)
			}
		}
	}
	if quotes != 3 {
		t.Errorf("%d quotes", quotes)
	}
	for _, code := range []int{exitDone, exitFailed, exitUsage, exitEnvironment, exitOutdated, exitDiffers,
		exitBug} {
		if !strings.Contains(text, fmt.Sprintf("\n| %d | ", code)) {
			t.Errorf("docs/review.md lacks exit code %d", code)
		}
	}
}
