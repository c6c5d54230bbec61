package webpage

import (
	"encoding/json"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/runexp/runexp/pipeline/publish"
)

// readings are the values of the parameter that says what of a signed map a stage reads.
var readings = []string{"magnitude", "positive", "signed"}

// setReads says of each score what of a map it reads: by its stage's own parameter or, without one, by that
// of the stages that perturb images for it. Cells or inputs that differ say nothing.
func (m *model) setReads(f *publish.Folder) {
	own := map[string]string{}
	for _, l := range f.Lines {
		var p struct{ Values any }
		stage := publish.StageOf(l.Cell)
		if json.Unmarshal(l.Params, &p) != nil {
			continue
		}
		values, _ := p.Values.(string)
		if !slices.Contains(readings, values) {
			values = ""
		}
		if was, ok := own[stage]; ok && was != values {
			values = ""
		}
		own[stage] = values
	}
	var e struct {
		Stages map[string]struct{ Uses string }
	}
	if yaml.Unmarshal(f.Experiment, &e) != nil {
		return
	}
	for _, s := range m.Scores {
		stage := publish.StageOf(s.Cells[0].Cell)
		if s.Reads = own[stage]; s.Reads != "" {
			continue
		}
		var found []string
		for _, name := range inputsOf(f.Experiment, stage) {
			from, _, _ := strings.Cut(name, ".")
			if strings.HasPrefix(e.Stages[from].Uses, "perturb/") {
				found = append(found, own[from])
			}
		}
		if slices.Sort(found); len(slices.Compact(found)) == 1 {
			s.Reads = found[0]
		}
	}
}
