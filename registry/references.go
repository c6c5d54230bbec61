package registry

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/runexp/runexp/stages"
)

// A Reference is an entry of references.bib.
type Reference struct {
	Key                  string
	Surname, Title, Year string // of the first author, without BibTeX's braces
	BibTeX               string // the entry, without the fields that BibTeX doesn't know

	// Files and the licence of a data set: parts of the names of its files, in lower case, and a sentence
	// about the permitted use.
	Files []string
	Terms string

	cited *regexp.Regexp // surname and year in a text, with the text between
}

//go:embed references.bib
var referencesText string

// References are all entries of references.bib, sorted by key.
var References = sync.OnceValue(func() []*Reference {
	list, err := parseReferences(referencesText)
	if err != nil {
		panic(err) // the file is a part of the program, and tested
	}
	return list
})

var (
	bibEntry = regexp.MustCompile(`(?ms)^@([a-z]+)\{([a-z0-9]+),\n(.*?)^\}$`)
	bibField = regexp.MustCompile(`(?m)^  ([a-z]+) = \{(.*)\},$`)
	bibMark  = regexp.MustCompile(`\\.|[{}]`)

	bibLetters = strings.NewReplacer(`{\v{s}}`, "š", `{\"o}`, "ö") // of first authors' names
)

// parseReferences reads entries with one field a line.
func parseReferences(text string) (list []*Reference, err error) {
	for _, m := range bibEntry.FindAllStringSubmatch(text, -1) {
		r, entry := &Reference{Key: m[2]}, "@"+m[1]+"{"+m[2]+",\n"
		for _, f := range bibField.FindAllStringSubmatch(m[3], -1) {
			value := bibMark.ReplaceAllString(bibLetters.Replace(f[2]), "")
			switch f[1] {
			case "author":
				first, _, _ := strings.Cut(value, " and ")
				r.Surname = first[strings.LastIndex(first, " ")+1:]
			case "title":
				r.Title = value
			case "year":
				r.Year = value
			case "files":
				r.Files = strings.Split(strings.ToLower(value), ", ")
				continue
			case "terms":
				r.Terms = value
				continue
			}
			entry += f[0] + "\n"
		}
		r.BibTeX = entry + "}\n"
		if r.Surname == "" || r.Title == "" || r.Year == "" {
			return nil, fmt.Errorf("references.bib: %s lacks author, title or year", r.Key)
		}
		r.cited = regexp.MustCompile(`\b` + regexp.QuoteMeta(r.Surname) + `\b.*?\b(1[6-9]|20)\d\d\b`)
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b *Reference) int { return strings.Compare(a.Key, b.Key) })
	return list, nil
}

// in reports whether a text of one line names the first author of r, and r's year as the next year after
// that; if titled is set, the beginning of the title must be between them or before.
func (r *Reference) in(text string, titled bool) bool {
	for _, at := range r.cited.FindAllStringIndex(text, -1) {
		found := text[at[0]:at[1]]
		if strings.HasSuffix(found, r.Year) && (!titled || strings.Contains(strings.ToLower(found),
			strings.ToLower(strings.TrimSpace(r.Title)))) {
			return true
		}
	}
	return false
}

// Cited returns the references that the description of a stage names, by first author and year. If several
// have both in common, the quoted title decides.
func Cited(s *stages.Stage) (list []*Reference) {
	text := strings.Join(strings.Fields(s.Doc), " ")
	all := References()
	for _, r := range all {
		alike := func(o *Reference) bool { return o != r && o.Surname == r.Surname && o.Year == r.Year }
		if r.in(text, slices.ContainsFunc(all, alike)) {
			list = append(list, r)
		}
	}
	return list
}

// DataSets returns the references of data sets whose files are named in an experiment's texts, such as
// paths.
func DataSets(texts []string) (list []*Reference) {
	for _, r := range References() {
		if slices.ContainsFunc(texts, func(text string) bool {
			text = strings.ToLower(text)
			return slices.ContainsFunc(r.Files, func(part string) bool {
				return strings.Contains(text, part)
			})
		}) {
			list = append(list, r)
		}
	}
	return list
}
