package publish

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/runexp/runexp/pipeline/typeset"
)

// mostNotes is how many notes a folder has at most.
const mostNotes = 40

// notes lists what README.md says of the run, in paragraphs of Markdown: first its head without the texts of
// stages, then what isn't of this run or of the whole experiment. Quotations are warnings.
func (f *Folder) notes() []string {
	list := f.Warnings()
	if len(f.Passages) == 0 && f.Opening() != "" {
		list = append(list, f.Opening())
	}
	list = slices.Concat(list, f.Guesses(), f.QuotedRemarks(), f.Unfinished())
	for _, text := range f.Partial() {
		list = append(list, "> "+text)
	}
	return list[:min(len(list), mostNotes)]
}

// QuotedRemarks returns the remarks on the data as quotations.
func (f *Folder) QuotedRemarks() (quotes []string) {
	for _, remark := range f.Remarks {
		quotes = append(quotes, "> **Data:** "+typeset.Inline(remark))
	}
	return quotes
}

// Unfinished returns quotations on the cells without results, and on what that means for the folder.
func (f *Folder) Unfinished() (quotes []string) {
	if len(f.Failed)+len(f.Blocked) == 0 {
		return nil
	}
	published := map[string]bool{}
	for _, l := range f.Lines {
		published[l.Cell] = true
	}
	add := func(what string, cells []string, names func(cell string) string) {
		if len(cells) == 0 {
			return
		}
		list := make([]string, len(cells))
		for i, cell := range cells {
			list[i] = names(cell)
		}
		quotes = append(quotes, fmt.Sprintf("> **%s (%s): %s", what, count(len(cells), "cell"),
			some(list, namedCells)))
	}
	earlier := func(cell string) string {
		if published[cell] {
			return typeset.Code(cell) + " (shown as an earlier run left it)"
		}
		return typeset.Code(cell)
	}
	add("Failed**", f.Failed, earlier)
	add("Not run, because something it needs failed or the run was stopped**", f.Blocked, earlier)
	quotes = append(quotes, "> Nothing was removed. What these cells would have changed is as it was.")
	add("No longer in the experiment**, but shown with the rest until nothing fails any more", f.Gone,
		typeset.Code)
	return quotes
}

// Partial returns paragraphs on why the folder isn't of one run of the whole experiment: what the run left
// out, and which files are of an earlier run.
func (f *Folder) Partial() (paragraphs []string) {
	if len(f.Narrowed) > 0 {
		text := "**Narrowed**, so this is not the whole experiment:\n"
		for _, what := range f.Narrowed {
			text += "\n- " + typeset.Inline(what)
		}
		paragraphs = append(paragraphs, text)
	}
	if len(f.Kept) > 0 {
		text := "Of an earlier run, because something failed in this one:\n"
		for _, file := range f.Kept {
			text += "\n- [" + typeset.Alt(path.Base(file)) + "](" + typeset.Target(file) + ")"
		}
		paragraphs = append(paragraphs, text)
	}
	return paragraphs
}

// quotation joins quotations of one paragraph.
func quotation(quotes []string) string { return strings.Join(quotes, "\n>\n") }

// readings are the values of the parameter that says what of a signed map a stage reads, with what each
// means.
var readings = [][2]string{
	{"magnitude", "magnitudes: for and against the class counts alike"},
	{"positive", "positive values alone"},
	{"signed", "signed values"},
}

// Readings returns what of a map each stage reads, magnitude, positive or signed: by its own parameter or,
// without one, by that of the stages that perturb images for it. Cells or inputs that differ say nothing.
func (f *Folder) Readings() map[string]string {
	of := map[string]string{}
	for _, l := range f.Lines {
		var p struct{ Values any }
		stage := stageOf(l.Cell)
		if json.Unmarshal(l.Params, &p) != nil {
			continue
		}
		values, _ := p.Values.(string)
		if !slices.ContainsFunc(readings, func(r [2]string) bool { return r[0] == values }) {
			values = ""
		}
		if was, ok := of[stage]; ok && was != values {
			values = ""
		}
		of[stage] = values
	}
	e, all := wiringOf(f.Experiment), map[string]string{}
	for stage, values := range of {
		if all[stage] = values; values != "" {
			continue
		}
		var found []string
		for _, name := range e[stage].names() {
			if from, _, _ := strings.Cut(name, "."); strings.HasPrefix(e[from].Uses, "perturb/") {
				found = append(found, of[from])
			}
		}
		if slices.Sort(found); len(slices.Compact(found)) == 1 {
			all[stage] = found[0]
		}
	}
	return all
}

// ReadsText says in sentences, as Markdown, which of the scores with a better direction read what of a signed
// map; "" of scores that don't tell.
func (f *Folder) ReadsText() string {
	of := f.Readings()
	var sentences []string
	for _, r := range readings {
		var names []string
		for _, l := range f.Lines {
			directed := func(m Mean) bool { return typeset.Arrows[m.Direction] != "" }
			name := typeset.Inline(stageOf(l.Cell))
			if of[stageOf(l.Cell)] == r[0] && slices.ContainsFunc(l.Means, directed) &&
				!slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		switch last := len(names) - 1; {
		case last == 0:
			sentences = append(sentences, names[0]+" reads "+r[1]+".")
		case last > 0:
			list := some(names[:last], namedCells) + " and " + names[last]
			sentences = append(sentences, list+" read "+r[1]+".")
		}
	}
	return strings.Join(sentences, " ")
}

// ShowsMaps reports whether the figures of a stage are sheets of maps.
func (f *Folder) ShowsMaps(stage string) bool {
	uses := wiringOf(f.Experiment)[stage].Uses
	return uses == "report/sheet" || uses == "report/text"
}

// InputsOf lists the names of the ports that the inputs of a stage read.
func InputsOf(experiment []byte, stage string) []string { return wiringOf(experiment)[stage].names() }

// A wiring is what an experiment says of a stage.
type wiring struct {
	Uses string
	In   yaml.Node
}

func wiringOf(experiment []byte) map[string]wiring {
	var e struct{ Stages map[string]wiring }
	if yaml.Unmarshal(experiment, &e) != nil {
		return nil
	}
	return e.Stages
}

// names lists the names of the ports that the inputs read.
func (w wiring) names() []string {
	names := []string{}
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode {
			names = append(names, n.Value)
		}
		for _, child := range n.Content { // the keys of mappings are no scores, and have no effect
			walk(child)
		}
	}
	walk(&w.In)
	return names
}
