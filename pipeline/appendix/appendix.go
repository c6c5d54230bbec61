// Package appendix writes the appendix of a paper from a review folder: one document in LaTeX with the
// answers, tables, figures and settings of an experiment, and the literature that it rests on.
//
//   - appendix.go: [Write] puts the files together; document.tex.tmpl is the form of the document.
//   - settings.go: the settings of each stage, from experiment.yaml and cells/.
//   - latex.go: texts and names of files for any LaTeX engine.
package appendix

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"text/template"

	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/pipeline/typeset"
	"github.com/runexp/runexp/stages"
)

// A Citation is an entry of BibTeX. Terms are what the owners of a data set allow.
type Citation struct{ Key, BibTeX, Title, Terms string }

// A Stage is the version and the literature of a stage.
type Stage struct {
	Version int
	Cites   []Citation
}

// A Source is what an appendix is made from.
type Source struct {
	Version *publish.Version
	Program string                                 // the program that writes the appendix, with its version
	Stage   func(name string) (Stage, bool)        // returns a stage by its name, such as score/mas
	Data    func(texts []string) (sets []Citation) // returns the data sets that an experiment's texts name
}

const (
	documentFile   = "appendix.tex"
	referencesFile = "references.bib"
)

//go:embed document.tex.tmpl
var documentText string

// document is the form of appendix.tex. No command of LaTeX looks like its delimiters.
var document = template.Must(template.New(documentFile).Delims("<<", ">>").Funcs(template.FuncMap{
	"text": typeset.LaTeXText, "answer": answer, "join": strings.Join, "verbatim": verbatim,
}).Parse(documentText))

// An exhibit is a table or a figure.
type exhibit struct {
	File    string // in the appendix
	Caption string
	From    string // the file in the review folder
	Missing string // why it isn't shown
}

// A page is the data of the document.
type page struct {
	Program, Folder, Title, Command string
	Answers                         []string
	Tables, Figures                 []exhibit
	Reads                           string // what of signed maps scores read, if sheets show some
	Settings                        []setting
	Seed                            string
	Makers, Notes                   []string
	Data                            []Citation
	Experiment                      []string
	Others                          []rune // letters that pdfLaTeX may not know
	Cites                           []string
}

// Write returns the files of an appendix by name: appendix.tex, references.bib, tables/*.tex and figures/*.
func Write(s Source) (map[string][]byte, error) {
	f, err := s.Version.Folder()
	if err != nil {
		return nil, err
	}
	files, names := map[string][]byte{}, namer{}
	p := page{Program: s.Program, Folder: f.Name, Title: f.Title, Command: f.Command, Notes: f.Notes}
	for _, a := range f.Answers() {
		p.Answers = append(p.Answers, a.Body)
	}
	ofSheet := func(x *publish.Sheet) (string, string) { return x.Stage, x.File }
	for _, sheet := range inOrder(f, f.Sheets, ofSheet) {
		from := strings.TrimSuffix(sheet.File, ".csv") + ".tex"
		b := s.Version.File(from)
		if b == nil {
			p.Tables = append(p.Tables, exhibit{From: sheet.File,
				Missing: fmt.Sprintf("has %d rows, more than a page", len(sheet.Rows))})
			continue
		}
		name := names.name("tables/", strings.TrimSuffix(path.Base(from), ".tex"), ".tex")
		files[name] = b
		p.Tables = append(p.Tables, exhibit{File: name, From: from, Caption: captionOf(b)})
	}
	p.addFigures(s.Version, f, names, files)
	if slices.ContainsFunc(f.Pictures, func(x *publish.Picture) bool { return f.ShowsMaps(x.Stage) }) {
		p.Reads = f.ReadsText()
	}
	e := readExperiment(f.Experiment)
	p.Seed, p.Experiment = e.seed, strings.Split(strings.TrimRight(string(f.Experiment), "\n"), "\n")
	var cites []Citation
	p.Settings, cites = e.settings(f.Lines, s.Stage)
	p.Data = s.Data(e.texts)
	cites = append(cites, p.Data...)
	slices.SortFunc(cites, func(a, b Citation) int { return strings.Compare(a.Key, b.Key) })
	cites = slices.CompactFunc(cites, func(a, b Citation) bool { return a.Key == b.Key })
	var bib strings.Builder
	for _, c := range cites {
		p.Cites = append(p.Cites, c.Key)
		bib.WriteString(c.BibTeX + "\n")
	}
	files[referencesFile] = []byte(bib.String())
	for _, l := range f.Lines {
		if l.MadeBy != "" && !slices.Contains(p.Makers, l.MadeBy) {
			p.Makers = append(p.Makers, l.MadeBy)
		}
	}
	slices.Sort(p.Makers)
	var b bytes.Buffer
	if err := document.Execute(&b, &p); err != nil {
		return nil, err
	}
	p.Others = beyond(append(b.Bytes(), bytes.Join(valuesOf(files, ".tex"), nil)...))
	b.Reset()
	if err := document.Execute(&b, &p); err != nil {
		return nil, err
	}
	files[documentFile] = b.Bytes()
	return files, nil
}

// inOrder sorts a list by stage, in the order of the published ones, and by file, the main one of a stage
// first.
func inOrder[T any](f *publish.Folder, list []T, of func(T) (stage, file string)) []T {
	return slices.SortedStableFunc(slices.Values(list), func(a, b T) int {
		stage, file := of(a)
		other, against := of(b)
		return cmp.Or(cmp.Compare(rankOf(f, stage), rankOf(f, other)),
			cmp.Compare(strings.Count(path.Base(file), "."), strings.Count(path.Base(against), ".")),
			cmp.Compare(file, against))
	})
}

func rankOf(f *publish.Folder, stage string) int {
	if i := slices.Index(f.Publish, stage); i >= 0 {
		return i
	}
	return len(f.Publish)
}

// shown are the kinds of figures that LaTeX includes, the best first.
var shown = []string{".pdf", ".png"}

// addFigures adds each figure once, as PDF or, if there is none, as PNG.
func (p *page) addFigures(v *publish.Version, f *publish.Folder, names namer, files map[string][]byte) {
	captions := map[string]string{}
	var stems []string
	of := func(x *publish.Picture) (string, string) { return x.Stage, x.File }
	for _, picture := range inOrder(f, f.Pictures, of) {
		stem := strings.TrimSuffix(picture.File, path.Ext(picture.File))
		if _, known := captions[stem]; !known {
			stems = append(stems, stem)
		}
		if captions[stem] == "" {
			captions[stem] = picture.Caption
		}
	}
	for _, stem := range stems {
		caption := strings.TrimSpace(captions[stem] + " " + placeOf(stem, f.Labels))
		x := exhibit{Caption: typeset.LaTeXText(caption), From: stem + ".svg",
			Missing: "exists as SVG alone"}
		for _, ext := range shown {
			if b := v.File(stem + ext); b != nil {
				x.From, x.Missing, x.File = stem+ext, "", names.name("figures/", path.Base(stem), ext)
				files[x.File] = b
				break
			}
		}
		p.Figures = append(p.Figures, x)
	}
}

// placeOf returns the coordinates in the name of a figure's file, with their labels: "model VGG-16." for
// figures/sheet.model=vgg, if that is the label of vgg.
func placeOf(stem string, labels stages.Names) string {
	place := path.Base(stem)
	i := strings.Index(place, "=")
	if i < 0 {
		return ""
	}
	place = place[strings.LastIndex(place[:i], ".")+1:] // without the stage and the port
	var coordinates []string
	for pair := range strings.SplitSeq(place, ",") {
		axis, id, _ := strings.Cut(pair, "=")
		coordinates = append(coordinates, axis+" "+cmp.Or(labels[axis][id], id))
	}
	return strings.Join(coordinates, ", ") + "."
}
