package publish

import (
	"strings"

	"github.com/runexp/runexp/stages"
)

// Results are what a run has to publish.
type Results struct {
	Name, Title string
	Experiment  []byte       // experiment.yaml with all defaults
	Command     string       // reproduces the run: "runexp run experiments/x.yaml"
	Cells       []Cell       // every declared cell, in the order of README.md
	Publish     []string     // names of the published stages, in the order of README.md
	Narrowed    []string     // phrases on what was left out or overridden; empty for the whole experiment
	Remarks     []string     // sentences on data that isn't used, or not as one may think
	Order       stages.Order // the ids of every axis, in the order of the experiment
	Labels      stages.Names // what people call ids
}

// A State is how a cell ended.
type State int

const (
	Done    State = iota
	Failed        // it ran and gave no result
	Blocked       // it didn't run: a cell that it needs failed, or the run was stopped
)

// A Cell is one stage at one combination of axes, and what it has to publish.
type Cell struct {
	Name       string // maps[method=ig,model=vgg]
	Cells      int    // how many cells of the run it stands for, 0 for one
	Stage      string // the stage's name in the experiment
	Coord      []stages.Coord
	State      State
	Definition stages.Digest
	Params     []byte // a JSON object with sorted keys; nil for none
	Shown      []byte // the images, rows and columns that its figure shows, a JSON object; nil for no figure
	N          int    // items, -1 for a cell that makes a value
	Items      string // what has scores, in the plural, such as "texts"; "" for images
	MadeBy     string // "cpu, ONNX Runtime 1.24.1"; empty if the results don't depend on it

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
	Values []float64 // NaN for an undefined score
}

// A Table is an output port that carries a table.
type Table struct {
	Port  string
	Table stages.Table
}

// A Figure is an output port that carries a picture.
type Figure struct {
	Port    string
	Ext     string // svg, png, pdf or tex
	Caption string // one line
	Data    []byte
}

// A Text is an output port that carries Markdown.
type Text struct {
	Port     string
	Markdown string
	Stored   string // what the stage wrote, where people read something else: "" for the same
}

// An output is a port of a stage, with what finished cells have there.
type output struct {
	stage, port string
	name        string // the name of its files, without their extensions
	cells       []cellOutput
}

// file names an output uniquely: a figure as PNG, PDF or LaTeX has the name of the same figure as SVG.
func (o *output) file() string {
	if o.port == "png" || o.port == "pdf" || o.port == "tex" {
		return o.name + "." + o.port
	}
	return o.name
}

// A cellOutput is what one cell has at an output: a score, a table or a figure.
type cellOutput struct {
	cell   *Cell
	score  *Score
	table  *stages.Table
	figure *Figure
}

// outputsOf lists the outputs in the order of the cells and of their ports, by the folder of their files. The
// files of a port that has the name of its stage or of its type are named by the stage alone, unless another
// output has files of that name: a stage "pic" with a port "sic" is one, a stage "pic.sic" another.
func outputsOf(cells []*Cell) map[string][]*output {
	index := map[[3]string]*output{}
	users := map[string]int{} // outputs by file
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

// baseNames returns the names that the files of an output may have, without their extensions. They have the
// second one if two outputs would have the first.
func baseNames(stage, port string) [2]string {
	full := escape(stage) + "." + escape(port)
	switch port {
	case stage, "score", "scores", "table", "figure", "png", "pdf", "tex":
		return [2]string{escape(stage), full}
	}
	return [2]string{full, full}
}

// scoreName returns the name of a score for people.
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
