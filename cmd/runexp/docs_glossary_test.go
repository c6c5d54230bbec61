package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/registry"
)

// glossaryTerms lists the anchors of docs/glossary.md with the word as text has it, for words that the pages
// use in no other sense.
var glossaryTerms = map[string]*regexp.Regexp{
	"cell":          regexp.MustCompile(`(?i)\bcells?\b`),
	"item":          regexp.MustCompile(`(?i)\bitems?\b`),
	"port":          regexp.MustCompile(`(?i)\bports?\b`),
	"implied":       regexp.MustCompile(`(?i)\bimplied\b`),
	"key":           regexp.MustCompile(`(?i)\b(?:its|no|same|a) \[?keys?\b`),
	"definition":    regexp.MustCompile(`(?i)\bdefinitions?\b`),
	"store":         regexp.MustCompile(`(?i)\b(?:the|a) \[?store\b`),
	"chunk":         regexp.MustCompile(`(?i)\bchunks?\b`),
	"share":         regexp.MustCompile(`(?i)\bshares\b`),
	"wave":          regexp.MustCompile(`(?i)\bwaves?\b`),
	"case":          regexp.MustCompile(`(?i)\*\[?case\b|\bcases \(`),
	"review-folder": regexp.MustCompile(`(?i)\breview folders?\b`),
}

// firstUses lists, for each page that users read from its beginning, the terms that it links at first use.
var firstUses = map[string][]string{
	"docs/cluster.md": {"cell", "item", "review-folder", "store", "share", "wave"},
	"docs/devices.md": {"item", "chunk"},
	"docs/language.md": {"cell", "item", "port", "implied", "key", "store", "share", "wave",
		"review-folder"},
	"docs/metrics.md":       {"definition"},
	"docs/review.md":        {"cell", "item", "case", "definition", "store", "review-folder"},
	"docs/stability.md":     {"cell", "item", "key", "store", "review-folder"},
	"docs/tutorial.md":      {"cell", "review-folder"},
	"docs/tutorial-text.md": {"review-folder"},
	"README.md":             {"cell"},
}

var glossaryLink = regexp.MustCompile(`\[([^\]]+)\]\((?:docs/)?glossary\.md#([a-z-]+)\)`)

// TestDocsGlossary checks that pages link the first use of a term to its line in docs/glossary.md, that all
// links lead to a line, and that the page's experiment is valid.
func TestDocsGlossary(t *testing.T) {
	text, anchors := page(t, "docs/glossary.md"), map[string]bool{}
	for _, m := range regexp.MustCompile(`<a id="([a-z-]+)"></a>`).FindAllStringSubmatch(text, -1) {
		if anchors[m[1]] {
			t.Errorf("docs/glossary.md has %s twice", m[1])
		}
		anchors[m[1]] = true
	}
	for term := range glossaryTerms {
		if !anchors[term] {
			t.Errorf("docs/glossary.md lacks %s", term)
		}
	}
	for _, m := range regexp.MustCompile(`\]\(#([a-z-]+)\)`).FindAllStringSubmatch(text, -1) {
		if !anchors[m[1]] {
			t.Errorf("docs/glossary.md links to #%s, which isn't there", m[1])
		}
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(pages, "../../README.md") {
		name, err := filepath.Rel("../..", file)
		if err != nil {
			t.Fatal(err)
		}
		linked := map[string]bool{}
		prose := proseOf(page(t, name))
		for _, m := range glossaryLink.FindAllStringSubmatchIndex(prose, -1) {
			term := prose[m[4]:m[5]]
			if !anchors[term] {
				t.Errorf("%s links to %s of the glossary, which isn't there", name, term)
			}
			if linked[term] {
				t.Errorf("%s links %s twice", name, term)
			}
			linked[term] = true
			word := glossaryTerms[term]
			if word == nil {
				continue
			}
			first := word.FindStringIndex(prose)
			if first == nil {
				t.Errorf("%s links %s to the glossary and doesn't use the word", name, term)
			} else if first[1] < m[2] {
				t.Errorf("%s links %s behind its first use: %q", name, term, around(prose, first[0]))
			}
		}
		for _, term := range firstUses[name] {
			if !linked[term] {
				first := glossaryTerms[term].FindStringIndex(prose)
				if first == nil {
					t.Errorf("%s doesn't use %s", name, term)
					continue
				}
				t.Errorf("%s doesn't link %s to the glossary: %q", name, term, around(prose, first[0]))
			}
		}
	}
	for _, f := range fencesOf(text) {
		x, err := plan.Parse("glossary.yaml", []byte(f.body), "../../experiments", registry.Builtin(),
			plan.Overrides{})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(x.Warnings) + len(x.Missing()); n > 0 {
			t.Errorf("docs/glossary.md: %v %v", x.Warnings, x.Missing())
		}
	}
}

// proseOf returns a page's text without what is quoted, headings and rows of tables.
func proseOf(text string) string {
	var kept strings.Builder
	quoted := false
	for line := range strings.Lines(text) {
		fence := strings.HasPrefix(line, "```")
		if fence {
			quoted = !quoted
		}
		if fence || quoted || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "|") ||
			strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "> ") {
			continue
		}
		kept.WriteString(line)
	}
	text = strings.Join(strings.Fields(kept.String()), " ")
	return regexp.MustCompile("`[^`]*`").ReplaceAllString(text, "``")
}

// around returns a text's words around a place.
func around(text string, at int) string {
	return strings.Join(strings.Fields(text[max(0, at-40):min(len(text), at+40)]), " ")
}
