package registry

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// unreferenced stages compute nothing that a paper defined, for the reasons here.
var unreferenced = map[string]string{
	"attribute/constant":             "a baseline",
	"attribute/external":             "another program's maps",
	"attribute/random":               "a baseline",
	"dataset/background":             "a data set",
	"dataset/folder":                 "the data set is known by its files' names alone",
	"dataset/mean":                   "a mean",
	"dataset/shapes":                 "runexp's own",
	"dataset/text":                   "the tokeniser is the library's, which its text names",
	"dataset/tokens":                 "the tokens are another program's",
	"perturb/noise":                  "the metric that reads it has the definition",
	"perturb/response":               "an output of the model",
	"perturb/segments":               "a preparation",
	"score/auc":                      "an area",
	"score/external":                 "another program's scores",
	"score/iou":                      "an overlap",
	"dataset/columns":                "what a list or an input says",
	"score/top-1":                    "an accuracy",
	"segments/external":              "another program's segments",
	"segments/grid":                  "a grid",
	"segments/mask":                  "a mask",
	"stats/mean-curve":               "a mean",
	"report/boxplot":                 "a drawing",
	"report/curves":                  "a drawing",
	"report/heatmap":                 "a drawing",
	"report/intervals":               "a drawing",
	"report/sheet":                   "a drawing",
	"report/text":                    "a drawing",
	"report/thumbnails":              "a drawing",
	"maps/rank":                      "an order",
	"maps/reduce":                    "a sum",
	"maps/positive":                  "a positive part",
	"maps/sign":                      "a sign",
	"maps/upsample":                  "a change of size",
	"model/noise":                    "the metric that reads it has the definition",
	"model/onnx":                     "the user's model",
	"model/predict":                  "a prediction",
	"model/target":                   "an expression of the user's",
	"attribute/grad-cam-elementwise": "another program's definition, without a paper",
}

var year = regexp.MustCompile(`\b(1[6-9]|20)\d\d\b`)

// TestReferences: each stage names what it computes by a reference or has a reason not to, each year in a
// description is that of a reference, and no reference is there for nothing.
func TestReferences(t *testing.T) {
	used := map[string]bool{}
	for _, s := range Builtin().Family("") {
		cited := Cited(s)
		reason, excused := unreferenced[s.Name]
		if len(cited) == 0 && reason == "" {
			t.Errorf("%s names no reference by its first author and year", s.Name)
		} else if len(cited) > 0 && excused {
			t.Errorf("%s has references and a reason to have none", s.Name)
		}
		years := map[string]bool{}
		for _, r := range cited {
			used[r.Key], years[r.Year] = true, true
		}
		for _, y := range year.FindAllString(s.Doc, -1) {
			if !years[y] {
				t.Errorf("%s: no reference of references.bib is what has the year %s", s.Name, y)
			}
		}
	}
	seen := map[string]bool{}
	for _, r := range References() {
		if !used[r.Key] && len(r.Files) == 0 {
			t.Errorf("no stage cites %s: %s %s, %s", r.Key, r.Surname, r.Year, r.Title)
		}
		if (r.Terms != "") != (len(r.Files) > 0) {
			t.Errorf("%s: a data set has both files and terms", r.Key)
		}
		if seen[r.Key] {
			t.Errorf("two entries are called %s", r.Key)
		}
		seen[r.Key] = true
	}
	if n := strings.Count(referencesText, "\n@"); n != len(seen) || n < 50 {
		t.Errorf("%d of %d entries are read", len(seen), n)
	}
}

// required are the fields that styles of BibTeX want of an entry, in addition to author, title and year.
var required = map[string][]string{
	"article": {"journal"}, "inproceedings": {"booktitle"}, "incollection": {"booktitle", "publisher"},
	"book": {"publisher"}, "techreport": {"institution"}, "misc": {"eprint"},
}

// TestReferencesAreBibTeX: entries are of known kinds and have the fields of their kind, braces close,
// letters are ASCII and special characters escaped, and nothing of ours is left in.
func TestReferencesAreBibTeX(t *testing.T) {
	head := regexp.MustCompile(`^@([a-z]+)\{`)
	for _, r := range References() {
		kind := head.FindStringSubmatch(r.BibTeX)[1]
		fields, known := required[kind]
		if !known {
			t.Errorf("%s is of the kind %s", r.Key, kind)
		}
		for _, f := range slices.Concat(fields, []string{"author", "title", "year"}) {
			if !strings.Contains(r.BibTeX, "\n  "+f+" = {") {
				t.Errorf("%s lacks %s", r.Key, f)
			}
		}
		depth := 0
		for i, c := range r.BibTeX {
			switch {
			case c == '{':
				depth++
			case c == '}':
				depth--
			case c > '~', strings.ContainsRune("&%#$", c) && r.BibTeX[i-1] != '\\':
				t.Errorf("%s has %q", r.Key, c)
			}
		}
		if depth != 0 || strings.Contains(r.BibTeX, "  files =") || strings.Contains(r.BibTeX, "  terms =") {
			t.Errorf("%s: %s", r.Key, r.BibTeX)
		}
		surname := strings.NewReplacer("-", "", "š", "s", "ö", "o").Replace(strings.ToLower(r.Surname))
		if !strings.HasPrefix(r.Key, surname+r.Year) {
			t.Errorf("%s isn't called by %s %s", r.Key, r.Surname, r.Year)
		}
	}
}

// TestCited: the year behind a name is the next one, and a title tells two of one name and year apart.
func TestCited(t *testing.T) {
	for text, want := range map[string]string{
		"Petsiuk, Das and\nSaenko, \"RISE\", BMVC 2018.":     "[petsiuk2018rise]",
		"Petsiuk 2017, and others 2018":                      "[]",
		"Selvaraju et al., 2017; Bach et al., 2015":          "[bach2015pixel selvaraju2017gradcam]",
		"Selvarajus 2017":                                    "[]",
		"Adebayo et al. 2018":                                "[]",
		"Adebayo, \"Sanity checks for saliency maps\", 2018": "[adebayo2018sanity]",
	} {
		var keys []string
		s := stages.New(stages.Def[struct{}]{Doc: text})
		for _, r := range Cited(&s) {
			keys = append(keys, r.Key)
		}
		if got := fmt.Sprint(keys); got != want {
			t.Errorf("%q cites %s, want %s", text, got, want)
		}
	}
}

// TestDataSets: data sets are known by the names of their files.
func TestDataSets(t *testing.T) {
	for text, want := range map[string]string{
		"imagenet/LOC_val_solution.csv": "russakovsky2015imagenet", "NWPU-RESISC45/test": "cheng2017remote",
		"VOCdevkit/VOC2012": "everingham2010voc", "photos": "", "food-101/images": "bossard2014food",
		"places365_val.txt": "zhou2018places",
	} {
		got := ""
		for _, r := range DataSets([]string{"x", text}) {
			got += r.Key
		}
		if got != want {
			t.Errorf("%q names %q, want %q", text, got, want)
		}
	}
}
