package appendix

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/runexp/runexp/pipeline/publish"
)

// A setting is a stage with its parameters, for those cells of a step that run it.
type setting struct {
	Step, Uses string
	Version    int
	Cells      int
	Cites      []string
	Params     []string // "steps: 50" or, if cells differ, "path: a (net x), b (net y)"
}

// An experiment is the content of experiment.yaml that an appendix needs.
type experiment struct {
	seed  string
	steps []string
	uses  map[string]string               // the stage of each step, or "${axis}" or "${axis.key}"
	axes  map[string]map[string]yaml.Node // fields by axis and id
	texts []string                        // all values, without those of the keys in noFiles
}

func readExperiment(b []byte) *experiment {
	var y struct {
		Seed   yaml.Node
		Axes   map[string]yaml.Node
		Stages yaml.Node
	}
	e := &experiment{uses: map[string]string{}, axes: map[string]map[string]yaml.Node{}}
	var all yaml.Node
	if yaml.Unmarshal(b, &y) != nil || yaml.Unmarshal(b, &all) != nil {
		return e // without an experiment, cells/ has the parameters
	}
	e.seed = y.Seed.Value
	for axis, n := range y.Axes {
		ids := map[string]yaml.Node{}
		if n.Decode(&ids) == nil {
			e.axes[axis] = ids
		}
	}
	for i := 0; y.Stages.Kind == yaml.MappingNode && i+1 < len(y.Stages.Content); i += 2 {
		var s struct{ Uses string }
		name := y.Stages.Content[i].Value
		e.steps = append(e.steps, name)
		if y.Stages.Content[i+1].Decode(&s) == nil {
			e.uses[name] = s.Uses
		}
	}
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode {
			e.texts = append(e.texts, n.Value)
		}
		for i, child := range n.Content {
			if n.Kind != yaml.MappingNode || i%2 == 1 && !slices.Contains(noFiles, n.Content[i-1].Value) {
				walk(child)
			}
		}
	}
	walk(&all)
	return e
}

// noFiles are keys whose values may name a data set that the experiment doesn't read: a net that was
// trained on ImageNet has the preset imagenet.
var noFiles = []string{"caption", "claims", "family", "gap", "label", "name", "preset", "title", "x_title",
	"y_title"}

var axisUse = regexp.MustCompile(`^\$\{([^.}]+)(?:\.([^}]+))?\}$`)

// stageOf returns the name of a cell's stage, "" if the experiment doesn't have it.
func (e *experiment) stageOf(cell string) string {
	uses := e.uses[publish.StageOf(cell)]
	m := axisUse.FindStringSubmatch(uses)
	if m == nil {
		return uses
	}
	key := m[2]
	if key == "" {
		key = "uses"
	}
	for _, at := range publish.CoordOf(cell) {
		var fields map[string]yaml.Node
		n := e.axes[m[1]][at.ID]
		if at.Axis == m[1] && n.Decode(&fields) == nil {
			n = fields[key]
			return n.Value
		}
	}
	return ""
}

// settings lists the settings of the cells of a folder, by step and stage, and the literature that they
// rest on.
func (e *experiment) settings(lines []*publish.Line, known func(string) (Stage, bool)) (list []setting,
	cites []Citation) {
	type group struct{ step, uses string }
	var order []group
	of := map[group][]*publish.Line{}
	for _, l := range lines {
		g := group{publish.StageOf(l.Cell), e.stageOf(l.Cell)}
		if of[g] == nil {
			order = append(order, g)
		}
		of[g] = append(of[g], l)
	}
	for _, g := range order {
		s := setting{Step: g.step, Uses: g.uses, Params: paramsOf(of[g])}
		for _, l := range of[g] {
			s.Cells += max(l.Cells, 1)
		}
		if stage, ok := known(g.uses); ok {
			s.Version = stage.Version
			for _, c := range stage.Cites {
				s.Cites = append(s.Cites, c.Key)
			}
			cites = append(cites, stage.Cites...)
		}
		list = append(list, s)
	}
	return list, cites
}

// paramsOf returns the parameters of cells of one stage as texts. Of a parameter that differs between
// cells, each value is followed by the ids or the number of the cells that have it.
func paramsOf(lines []*publish.Line) (out []string) {
	values := map[string][]string{} // by parameter, for each line
	for i, l := range lines {
		var p map[string]json.RawMessage
		if json.Unmarshal(l.Params, &p) != nil {
			continue
		}
		for name, v := range p {
			if values[name] == nil {
				values[name] = make([]string, len(lines))
			}
			values[name][i] = valueText(v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		out = append(out, name+": "+strings.Join(valuesBy(lines, values[name]), ", "))
	}
	return out
}

// valueText returns a value of JSON as an experiment has it.
func valueText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		if s == "" {
			return `""`
		}
		return s
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return strings.ReplaceAll(b.String(), ",", ", ")
}

// valuesBy returns the distinct values of lines. If there are several, each is followed by the ids that
// have it on the first axis whose ids determine the value or, without such an axis, by the number of cells
// that have it.
func valuesBy(lines []*publish.Line, values []string) []string {
	distinct := slices.Compact(slices.Sorted(slices.Values(values)))
	if len(distinct) == 1 {
		return distinct
	}
	axes := map[string]map[string]string{} // the value of each id
	determines := map[string]bool{}        // the value, by axis
	for i, l := range lines {
		for _, at := range publish.CoordOf(l.Cell) {
			if axes[at.Axis] == nil {
				axes[at.Axis], determines[at.Axis] = map[string]string{}, true
			}
			if v, ok := axes[at.Axis][at.ID]; ok && v != values[i] {
				determines[at.Axis] = false
			}
			axes[at.Axis][at.ID] = values[i]
		}
	}
	by := func(axis string, v string) (ids []string) {
		for _, id := range slices.Sorted(maps.Keys(axes[axis])) {
			if axes[axis][id] == v {
				ids = append(ids, id)
			}
		}
		return ids
	}
	var out []string
	for _, axis := range slices.Sorted(maps.Keys(axes)) {
		if !determines[axis] {
			continue
		}
		for _, v := range distinct {
			out = append(out, fmt.Sprintf("%s (%s %s)", v, axis, strings.Join(by(axis, v), " ")))
		}
		return out
	}
	counts := map[string]int{}
	for _, v := range values {
		counts[v]++
	}
	for _, v := range distinct {
		out = append(out, fmt.Sprintf("%s (%d cells)", v, counts[v]))
	}
	return out
}
