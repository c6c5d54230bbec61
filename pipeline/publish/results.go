package publish

import (
	"strings"

	"github.com/runexp/runexp/stages"
)

// A Results is what a run has to publish.
type Results struct {
	Name, Title string
	Experiment  []byte       // experiment.yaml, resolved
	Command     string       // how to reproduce it: "runexp run experiments/x.yaml"
	Cells       []Cell       // every declared cell, in the order in which README.md shows them
	Publish     []string     // names of the published stages, in the order of README.md
	Narrowed    []string     // in words, what was left out or overridden; empty for the file as it stands
	Remarks     []string     // in sentences, what of the data isn't used, or is taken otherwise
	Order       stages.Order // of every axis: its ids as the experiment writes them
	Labels      stages.Names // of the ids that have one
}

// A State tells how a cell ended.
type State int

const (
	Done    State = iota
	Failed        // it ran and gave no result
	Blocked       // it didn't run: something it needs failed, or the run was stopped
)

// A Cell is one stage at one combination of axes, and what it has to publish.
type Cell struct {
	Name       string // maps[method=ig,model=vgg]
	Cells      int    // how many cells it stands for, if not for one
	Stage      string // the stage's name in the experiment
	Coord      []stages.Coord
	State      State
	Definition stages.Digest
	Params     []byte // a JSON object with sorted keys; nil for none
	Shown      []byte // which images, rows and columns its figure shows, a JSON object; nil for none
	N          int    // items, -1 for a cell that makes a value
	MadeBy     string // "cpu, ONNX Runtime 1.24.1"; empty where nothing depends on it

	Scores  []Score
	Tables  []Table
	Figures []Figure
	Texts   []Text
}

// A Score is an output port of scores.
type Score struct {
	Port    string
	Measure stages.Measure
	Items   Items
}

// Items are the scores of all items.
type Items struct {
	IDs    []string
	Values []float64 // NaN where it's undefined
}

// A Table is an output port that carries a table.
type Table struct {
	Port  string
	Table stages.Table
}

// A Figure is an output port that carries a picture.
type Figure struct {
	Port    string
	Ext     string // svg, png or pdf
	Caption string // one line
	Data    []byte
}

// A Text is an output port that carries Markdown.
type Text struct {
	Port     string
	Markdown string
}

// An output is a port of a stage, and what finished cells have there.
type output struct {
	stage, port string
	name        string // of its files, without their endings
	cells       []cellOutput
}

// file tells an output from others of the same name: a figure as PNG or PDF is called like the one as SVG.
func (o *output) file() string {
	if o.port == "png" || o.port == "pdf" {
		return o.name + "." + o.port
	}
	return o.name
}

// A part is what one cell has at an output: one of the three.
type cellOutput struct {
	cell   *Cell
	score  *Score
	table  *stages.Table
	figure *Figure
}

// outputsOf lists the outputs in the order of the cells and of their ports, by the folder of their files. A
// port called like its stage or like its type isn't spelled out in their names, unless another output's files
// are called so: those of a stage "pic" with a port "sic", and of a stage "pic.sic".
func outputsOf(cells []*Cell) map[string][]*output {
	index := map[[3]string]*output{}
	users := map[string]int{} // of a name
	outputs := map[string][]*output{}
	for _, c := range cells {
		add := func(folder, port string, p cellOutput) {
			key := [3]string{folder, c.Stage, port}
			o := index[key]
			if o == nil {
				o = &output{stage: c.Stage, port: port, name: folder + "/" + baseNames(c.Stage, port)[0]}
				index[key], outputs[folder] = o, append(outputs[folder], o)
				users[o.file()]++
			}
			if p.cell = c; c.State == Done {
				o.cells = append(o.cells, p)
			}
		}
		for i := range c.Scores {
			add("items", c.Scores[i].Port, cellOutput{score: &c.Scores[i]})
		}
		for i := range c.Tables {
			add("tables", c.Tables[i].Port, cellOutput{table: &c.Tables[i].Table})
		}
		for i := range c.Figures {
			add("figures", c.Figures[i].Port, cellOutput{figure: &c.Figures[i]})
		}
	}
	for key, o := range index {
		if users[o.file()] > 1 {
			o.name = key[0] + "/" + baseNames(o.stage, o.port)[1]
		}
	}
	return outputs
}

// baseNames returns the names that the files of an output may have, without their endings: the second is for
// when the first belongs to another output too.
func baseNames(stage, port string) [2]string {
	full := escape(stage) + "." + escape(port)
	switch port {
	case stage, "score", "scores", "table", "figure", "png", "pdf":
		return [2]string{escape(stage), full}
	}
	return [2]string{full, full}
}

// scoreName names a score for people.
func scoreName(stage, port string) string {
	if port == stage || port == "score" || port == "scores" {
		return stage
	}
	return stage + "." + port
}

// stageOf returns the stage in the name of a cell.
func stageOf(cell string) string {
	stage, _, _ := strings.Cut(cell, "[")
	return stage
}
