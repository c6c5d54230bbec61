package main

import (
	"bufio"
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/stagetest"
)

// A rewording is what the project doesn't write, as a regular expression, and what it writes instead. Words
// that have another sense elsewhere are checked in the packages within alone.
type rewording struct{ avoid, use, within string }

const passes = "stages/internal/" // where graph passes are

var glossary = []rewording{
	{`ways? back|goes? back|going back(wards)?`, "backward pass, backward", ""},
	{`ways? forward|goes? forward`, "forward pass", ""},
	{`brings?|brought|arrivals?|what comes back`, "returns, result", ""},
	{`hangs? on|hanging on`, "depends on", ""},
	{`leftovers?`, "cached outputs", "stages/"},
	{`steady|unsteady|wavers?`, "batch-invariant, batch-dependent, deterministic", ""},
	{`halve|halves`, "gemm alpha", passes + "lower/"},
	{`widen|widens|widened`, "pad channels", passes + "lower/"},
	{`lighten|lightens|lightened`, "detach weights", passes + "lower/"},
	{`misfused?`, "ORT workarounds", ""},
	{`spared?`, "removable", passes},
	{`shelf|shelves`, "cache", ""},
	{`slabs?|spools?|spooled`, "arena, buffer", ""},
	{`at hand`, "existing, current", ""},
	{`whoever`, "the caller", ""},
	{`complaints?|complains?`, "diagnostic, error", ""},
	{`is said|says? so`, "is reported, returns an error", ""},
	{`what it is|what there is`, "the thing's name", ""},
	{`duels?`, "pairwise comparison", ""},
	{`unasked|unsaid`, "by default", ""},
	{`taught`, "has no registered Op", ""},
}

// legitimate lists, by path, what can't be changed.
var legitimate = map[string][]string{
	"cmd/runexp/words_test.go": nil,
}

// TestGlossary checks that comments, messages and identifiers use the terms of the field.
func TestGlossary(t *testing.T) {
	if inUndetected(t) {
		return
	}
	var patterns []*regexp.Regexp
	var all []string
	for _, g := range glossary {
		patterns = append(patterns, regexp.MustCompile(`(?i)\b(?:`+g.avoid+`)\b`))
		all = append(all, g.avoid)
	}
	avoided := regexp.MustCompile(`(?i)\b(?:` + strings.Join(all, "|") + `)\b`)
	check := func(path string, line int, text string) {
		if !avoided.MatchString(text) { // nearly every text
			return
		}
		for i, p := range patterns {
			for _, word := range p.FindAllString(text, -1) {
				if strings.HasPrefix(path, glossary[i].within) && !allowed(path, strings.ToLower(word)) {
					t.Errorf("%s:%d: %q: write %q", path, line, word, glossary[i].use)
				}
			}
		}
	}
	for path, b := range projectFiles(t) {
		if filepath.Ext(path) != ".go" {
			for i, line := range strings.Split(string(b), "\n") {
				comment, ext := strings.Index(line, "#"), filepath.Ext(path)
				if ext == ".md" || ext == ".tmpl" {
					check(path, i+1, line)
				} else if comment >= 0 {
					check(path, i+1, line[comment:])
				}
			}
			continue
		}
		tokens(path, b, func(line int, tok token.Token, text string) {
			switch tok {
			case token.COMMENT, token.STRING:
				text = strings.ReplaceAll(strings.ReplaceAll(text, "\n//", "\n"), "\n", " ")
				check(path, line, strings.Join(strings.Fields(text), " "))
			case token.IDENT:
				check(path, line, camel.ReplaceAllString(text, "$1 $2"))
			}
		})
	}
}

// idioms are phrases that a reader has to translate: "tells" means reports or shows, "but for" except, "as
// far as" if.
var idioms = regexp.MustCompile(`(?i)\b(?:tells|but for|as far as)\b`)

// TestIdioms checks that comments say things in plain English.
func TestIdioms(t *testing.T) {
	for file, b := range projectFiles(t) {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		tokens(file, b, func(line int, tok token.Token, text string) {
			if tok != token.COMMENT {
				return
			}
			text = strings.Join(strings.Fields(strings.ReplaceAll(text, "\n//", "\n")), " ")
			if found := idioms.FindString(text); found != "" {
				t.Errorf("%s:%d: %q: say it in plain English", file, line, found)
			}
		})
	}
}

// camel separates the words of an identifier.
var camel = regexp.MustCompile(`([a-z0-9])([A-Z])`)

func allowed(path, word string) bool {
	for prefix, words := range legitimate {
		if strings.HasPrefix(path, prefix) && (words == nil || slices.Contains(words, word)) {
			return true
		}
	}
	return false
}

// maxColumns is the longest line of the project, with tabs of tabWidth columns.
const (
	maxColumns = 110
	tabWidth   = 4
)

// TestLineLength checks that no line of Go code exceeds maxColumns. Struct tags and the lines of raw strings
// can't be broken.
func TestLineLength(t *testing.T) {
	for path, b := range projectFiles(t) {
		if filepath.Ext(path) != ".go" {
			continue
		}
		unbreakable := map[int]bool{}
		tokens(path, b, func(line int, tok token.Token, text string) {
			if tok != token.STRING || !strings.HasPrefix(text, "`") {
				return
			}
			if lines := strings.Count(text, "\n"); lines > 0 || strings.Contains(text, `:"`) {
				for i := range lines + 1 {
					unbreakable[line+i] = true
				}
			}
		})
		s := bufio.NewScanner(bytes.NewReader(b))
		s.Buffer(nil, len(b)+1)
		for line := 1; s.Scan(); line++ {
			columns := 0
			for _, r := range s.Text() {
				if columns++; r == '\t' {
					columns += tabWidth - 1
				}
			}
			if columns > maxColumns && !unbreakable[line] {
				t.Errorf("%s:%d: %d columns, the maximum is %d", path, line, columns, maxColumns)
			}
		}
	}
}

// tokens calls f for every token of a Go file; consecutive line comments are one token.
func tokens(path string, src []byte, f func(line int, tok token.Token, text string)) {
	files := token.NewFileSet()
	file := files.AddFile(path, -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, scanner.ScanComments)
	comment, first, last := "", 0, 0
	flush := func() {
		if comment != "" {
			f(first, token.COMMENT, comment)
		}
		comment = ""
	}
	for {
		pos, tok, text := s.Scan()
		line := file.Line(pos)
		if tok == token.COMMENT {
			if comment != "" && line != last+1 {
				flush()
			}
			if comment == "" {
				first = line
			}
			comment, last = comment+"\n"+text, line
			continue
		}
		if tok == token.SEMICOLON && text == "\n" {
			continue
		}
		flush()
		if tok == token.EOF {
			return
		}
		f(line, tok, text)
	}
}

// projectFiles returns the project's hand-written Go files, texts and experiments by path.
func projectFiles(t *testing.T) map[string][]byte {
	t.Helper()
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	err = filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if e.IsDir() {
			switch name := e.Name(); {
			case rel == "artifacts", rel == "lib", rel == "bin", name == "testdata", name == "onnxpb":
				return filepath.SkipDir
			case strings.HasPrefix(name, ".") && rel != "." && rel != ".ci":
				return filepath.SkipDir
			}
			return nil
		}
		switch filepath.Ext(path) {
		case ".go", ".md", ".tmpl", ".yaml":
		default:
			if rel != "Makefile" && rel != ".ci/run" && rel != ".ci/fuzz" {
				return nil
			}
		}
		files[rel], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 100 {
		t.Fatal(fmt.Errorf("only %d files below %s", len(files), root))
	}
	return files
}
