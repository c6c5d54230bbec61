package appendix

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// nasty are texts that LaTeX would take for something else.
var nasty = []string{`\input{/etc/passwd}`, `}\end{tabular}\write18{x}`, "50% & more_$1", `\\[9cm]`,
	"^^5cinput", "#1", "--- ``''", "~", "α β ∂f/∂x", "Ελλάδα", "日本語", "😀", "ŧħĸ", "a[b]c*", "{", "}}", "%",
	`\`, "| < > \"", "\\end{document}",
	"e\u0301", "\u202egnp", "über-Straße", "-", "$$", "[x]"}

// drawn returns a text of any characters.
func drawn(r *rand.Rand) string {
	if r.IntN(2) == 0 {
		return nasty[r.IntN(len(nasty))]
	}
	var b strings.Builder
	for range 1 + r.IntN(8) {
		switch r.IntN(3) {
		case 0:
			b.WriteByte(byte(' ' + r.IntN(95)))
		case 1:
			b.WriteRune(rune(0xa0 + r.IntN(0x2000)))
		default:
			b.WriteString(nasty[r.IntN(len(nasty))])
		}
	}
	return b.String()
}

// idText makes a text one that an id may be.
func idText(s string) string {
	r := []rune(strings.NewReplacer(",", "", "=", "", "[", "", "]", "").Replace(s))
	return strings.Trim(string(r[:min(len(r), 20)]), " ") + "x" // names of files may not be long
}

// publishFolder publishes an experiment of two methods with the given texts, and returns its folder.
func publishFolder(t *testing.T, text func() string) string {
	t.Helper()
	dir, a, b := t.TempDir(), "a"+idText(text()), "b"+idText(text())
	e := map[string]any{
		"name": "nasty", "title": text(), "seed": 7,
		"axes": map[string]any{"method": map[string]any{
			a: map[string]any{"uses": "attribute/rise", "with": map[string]any{"path": text()}},
			b: map[string]any{"uses": "attribute/occlusion", "path": "imagenet/val"},
		}},
		"stages": map[string]any{
			"maps":  map[string]any{"uses": "${method}", "matrix": []string{"method"}},
			"score": map[string]any{"uses": "score/mas", "in": map[string]any{"maps": "maps"}},
			"table": map[string]any{"uses": "report/table"},
		},
		"publish": []string{"table"},
	}
	out, err := yaml.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 300, 40))); err != nil {
		t.Fatal(err)
	}
	table := stages.Table{Title: text(), Keys: []string{"method"},
		Numbers: []stages.Column{{Name: text(), Direction: stages.Higher, Digits: 3}},
		Rows: []stages.Row{{Keys: []string{a}, Numbers: []stages.Number{1}},
			{Keys: []string{text()}, Numbers: []stages.Number{2}}}}
	params := func(v any) []byte {
		b, err := json.Marshal(map[string]any{"steps": v, "text": text()})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	cell := func(stage, method string, params []byte) publish.Cell {
		c := publish.Cell{Name: stage, Stage: stage, Params: params, N: 3, MadeBy: "cpu"}
		if method != "" {
			c.Name += "[method=" + method + "]"
			c.Coord = []stages.Coord{{Axis: "method", ID: method}}
		}
		return c
	}
	maps := cell("maps", a, params(1))
	figure := publish.Figure{Port: "png", Ext: "png", Caption: text(), Data: picture.Bytes()}
	maps.Figures = []publish.Figure{figure, {Port: "pdf", Ext: "pdf", Caption: text(), Data: blankPDF()}}
	others := cell("maps", b, params(2))
	others.Figures = []publish.Figure{figure}
	last := cell("table", "", params([]int{1, 2}))
	last.Tables = []publish.Table{{Port: "table", Table: table}}
	last.Texts = []publish.Text{{Port: "answer", Markdown: "**" + text() + "** is " + text()}}
	_, err = publish.Write(dir, &publish.Results{Name: "nasty", Title: text(), Experiment: out,
		Publish: []string{"table", "maps"},
		Cells:   []publish.Cell{maps, others, last}}, publish.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// blankPDF is a PDF of one blank page.
func blankPDF() []byte {
	var b bytes.Buffer
	var places []int
	b.WriteString("%PDF-1.4\n")
	for i, object := range []string{"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 40]>>"} {
		places = append(places, b.Len())
		fmt.Fprintf(&b, "%d 0 obj%s endobj\n", i+1, object)
	}
	table := b.Len()
	b.WriteString("xref\n0 4\n0000000000 65535 f \n")
	for _, place := range places {
		fmt.Fprintf(&b, "%010d 00000 n \n", place)
	}
	fmt.Fprintf(&b, "trailer<</Size 4/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", table)
	return b.Bytes()
}

func known(name string) (Stage, bool) {
	if name == "" || strings.HasPrefix(name, "report/") {
		return Stage{}, false
	}
	key := strings.ReplaceAll(strings.ReplaceAll(name, "/", ""), "-", "")
	return Stage{3, []Citation{{Key: key, BibTeX: "@misc{" + key + ",\n  title = {T},\n}\n"}}}, true
}

func sets(texts []string) (list []Citation) {
	for _, text := range texts {
		if strings.Contains(text, "imagenet") {
			list = append(list, Citation{"imagenet", "@misc{imagenet,\n  title = {I},\n}\n",
				"ImageNet & more", "Only for 50% of it."})
		}
	}
	return list
}

func written(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	v, err := publish.ReadVersion(dir)
	if err != nil {
		t.Fatal(err)
	}
	files, err := Write(Source{v, "runexp 1_2", known, sets})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestLaTeXDocument: an appendix has the answer, table, figures, the settings of each stage, and what is
// cited.
func TestLaTeXDocument(t *testing.T) {
	texts := []string{"a", "b", "Which is best?", "photos", "A table", "rho", "rise 1", "p", "q", "r",
		"A map.", "w", "**", "so"}
	i := 0
	files := written(t, publishFolder(t, func() string { i++; return texts[i%len(texts)] }))
	text := string(files[documentFile])
	for _, want := range []string{
		`\section{`, `\input{tables/table.tex}`, `\includegraphics{figures/maps-method-abx.pdf}`,
		`\includegraphics{figures/maps-method-bWhich`, `seed 7`, `runexp 1\_2`,
		`\textbf{maps} \newline attribute/rise, version 3 \cite{attributerise} & steps: 1`,
		`\newline attribute/occlusion, version 3 \cite{attributeocclusion} & steps: 2`,
		`\textbf{table} \newline report/table & steps: {[}1, 2]`,
		`ImageNet \& more \cite{imagenet}: Only for 50\% of it.`,
		`uses: \$\{method\}`, `\bibliography{references}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the appendix lacks %s", want)
		}
	}
	bib := string(files[referencesFile])
	for _, key := range []string{"attributerise", "attributeocclusion", "imagenet"} {
		if strings.Count(bib, "{"+key+",") != 1 {
			t.Errorf("references.bib has %s %d times", key, strings.Count(bib, "{"+key+","))
		}
	}
	check(t, files)
	stagetest.LaTeX(t, files, documentFile)
	if t.Failed() {
		t.Log(text)
	}
}

// TestHostileLaTeX: whatever is in the texts of a folder, the appendix has the structure that the template
// has, and compiles.
func TestHostileLaTeX(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		files := written(t, publishFolder(t, func() string { return drawn(r) }))
		check(t, files)
		if t.Failed() {
			t.Fatalf("%s", files[documentFile])
		}
	}
	files := written(t, publishFolder(t, func() string { return drawn(r) + strings.Join(nasty, " ") }))
	check(t, files)
	stagetest.LaTeX(t, files, documentFile)
}

var (
	command     = regexp.MustCompile(`\\([A-Za-z@]+|.)`)
	environment = regexp.MustCompile(`\\(begin|end)\{([a-z]+)\}`)
	included    = regexp.MustCompile(`\\(?:input|includegraphics)\{([^}]*)\}`)
	strange     = regexp.MustCompile(`[^A-Za-z0-9./-]`) // in the name of a file
)

// check checks the structure of the document: braces and environments close, characters that are commands
// stand alone nowhere, and nothing is included but tables and figures.
func check(t *testing.T, files map[string][]byte) {
	t.Helper()
	text := string(files[documentFile])
	_, body, ok := strings.Cut(text, "% appendix begins\n")
	if !ok || strings.Count(text, `\end{document}`) != 1 {
		t.Error("the document has no body, or two ends")
	}
	var open []string
	for _, m := range environment.FindAllStringSubmatch(body, -1) {
		if m[1] == "begin" {
			open = append(open, m[2])
		} else if m[2] != "document" && (len(open) == 0 || open[len(open)-1] != m[2]) {
			t.Errorf("%s ends in %v", m[2], open)
		} else if m[2] != "document" {
			open = open[:len(open)-1]
		}
	}
	depth, math := 0, false
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "%") {
			continue
		}
		for _, c := range command.ReplaceAllString(line, "") {
			switch {
			case c == '{':
				depth++
			case c == '}':
				depth--
			case c == '$':
				math = !math
			case strings.ContainsRune("#%~", c), strings.ContainsRune("^_", c) && !math:
				t.Errorf("%q stands alone in %s", c, line)
			}
		}
		if depth < 0 || math {
			t.Errorf("braces or dollars don't close in %s", line)
			break
		}
	}
	if depth != 0 || len(open) > 0 {
		t.Errorf("%d braces and %v stay open", depth, open)
	}
	for _, m := range included.FindAllStringSubmatch(body, -1) {
		if files[m[1]] == nil || strange.MatchString(m[1]) {
			t.Errorf("%q is included", m[1])
		}
	}
	for _, bad := range []string{`\write`, `\openin`, `\catcode`} {
		if strings.Contains(body, bad) {
			t.Errorf("the document has %s", bad)
		}
	}
}

// TestValuesBy: values that differ are followed by the ids of the axis that determines them.
func TestValuesBy(t *testing.T) {
	var lines []*publish.Line
	for _, cell := range []string{"a[m=x,n=p]", "a[m=x,n=q]", "a[m=y,n=p]", "a[m=y,n=q]"} {
		lines = append(lines, &publish.Line{Cell: cell})
	}
	for want, values := range map[string][]string{
		"[1]":                       {"1", "1", "1", "1"},
		"[1 (m x) 2 (m y)]":         {"1", "1", "2", "2"},
		"[1 (n p) 2 (n q)]":         {"1", "2", "1", "2"},
		"[1 (2 cells) 2 (2 cells)]": {"1", "2", "2", "1"},
	} {
		if got := fmt.Sprint(valuesBy(lines, values)); got != want {
			t.Errorf("%v: %s, want %s", values, got, want)
		}
	}
}

// TestNames: files' names are ASCII, and no two are one where letters' case doesn't count.
func TestNames(t *testing.T) {
	n := namer{}
	for _, c := range []struct{ base, want string }{{"a.model=b,c", "t/a-model-b-c.x"},
		{"A model_b.c", "t/A-model-b-c-2.x"}, {"日本", "t/x.x"}, {"..", "t/x-2.x"}} {
		if got := n.name("t/", c.base, ".x"); got != c.want {
			t.Errorf("%q: %s, want %s", c.base, got, c.want)
		}
	}
}

// TestDataSetsOfFiles: texts that a data set may be known by are those of files, not of people or presets.
func TestDataSetsOfFiles(t *testing.T) {
	e := readExperiment([]byte(`
name: imagenet
title: as on imagenet
axes:
  net: {a: {path: a.onnx, preset: imagenet, label: imagenet net}}
  data: [food101]
stages:
  imagenet: {uses: dataset/folder, with: {path: samples/cifar10, list: "${data}/list.csv"}}
`))
	if got := strings.Join(e.texts, " "); strings.Contains(got, "imagenet") ||
		!strings.Contains(got, "cifar10") || !strings.Contains(got, "food101") {
		t.Errorf("texts %q", got)
	}
}
