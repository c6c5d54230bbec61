package main

import (
	"encoding"
	"fmt"
	"maps"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
)

// papers are the experiments of experiments/papers.
var papers = []string{
	"abslrp-ablation", "abslrp-explained", "abslrp-gae-resnet", "abslrp-gae-vgg", "abslrp-gae-vit",
	"abslrp-metrics", "abslrp-sheets", "abslrp-text", "abslrp-toy", "difull-aggatt", "difull-kernels",
	"difull-layers", "difull-quantitative", "difull-sheets", "difull-smoothing", "mas-baseline-invariance",
	"mas-consistency",
	"mas-curves", "mas-ranking", "mas-sensitivity", "metarank-cases", "metarank-checkpoints",
	"metarank-consistency", "metarank-fusion", "metarank-leaderboard", "metarank-road",
}

// TestPapers checks that each experiment of the papers has nothing wrong with it, as it stands and as the
// commands in its head run it, that its tables have the rows and columns of the paper's, and that its stages
// have the paper's parameters: both as NAME.paper lists them.
func TestPapers(t *testing.T) {
	files, err := filepath.Glob("../../experiments/papers/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".yaml"))
	}
	for _, name := range names {
		if !slices.Contains(papers, name) {
			t.Errorf("%s isn't listed", name)
		}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			file := "../../experiments/papers/" + name + ".yaml"
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p := loadPaper(t, file, plan.Overrides{})
			if p.Name != name || len(p.Warnings) > 0 {
				t.Errorf("the experiment %s has the warnings %v", p.Name, p.Warnings)
			}
			loadPaper(t, file, headCommand(t, text, "CI", name))
			large := loadPaper(t, file, headCommand(t, text, "Paper scale", name))
			list, err := os.ReadFile("../../experiments/papers/" + name + ".paper")
			if err != nil {
				t.Fatal(err)
			}
			l := readPaperList(t, string(list))
			comparePaper(t, p, l)
			compareProtocol(t, p, l, func(v paperValue) string { return v.small })
			compareProtocol(t, large, l, func(v paperValue) string { return v.large })
		})
	}
}

func loadPaper(t *testing.T, file string, o plan.Overrides) *plan.Plan {
	t.Helper()
	p, err := plan.Load(file, registry.Builtin(), o)
	if err != nil {
		t.Fatalf("with %+v: %v", o, err)
	}
	return p
}

// headCommand reads a command in the head of an experiment, which further lines indented by three continue.
func headCommand(t *testing.T, text []byte, title, name string) (o plan.Overrides) {
	t.Helper()
	m := regexp.MustCompile(`(?m)^# ` + title + `: (.*(?:\n#   .*)*)$`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("its head has no line %q", "# "+title+": runexp run …")
	}
	line := strings.NewReplacer("\n#", " ", "\\\n#", " ").Replace(string(m[1]))
	words, err := exec.Command("sh", "-c", `printf '%s\n' `+line).Output()
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	args := strings.Fields(strings.ReplaceAll(string(words), " ", "\x01"))
	want := []string{"runexp", "run", "experiments/papers/" + name + ".yaml"}
	if len(args) < 3 || !slices.Equal(args[:3], want) {
		t.Fatalf("%s: it begins with %q, want %q", title, args[:min(3, len(args))], want)
	}
	for i := 3; i < len(args); i += 2 {
		if i+1 == len(args) {
			t.Fatalf("%s: %s has no value", title, args[i])
		}
		value := strings.ReplaceAll(args[i+1], "\x01", " ")
		switch args[i] {
		case "--set":
			o.Set = append(o.Set, value)
		case "--only":
			o.Only = append(o.Only, value)
		case "--limit":
			o.Limit, err = strconv.Atoi(value)
		case "--devices":
		default:
			err = fmt.Errorf("unexpected %s", args[i])
		}
		if err != nil {
			t.Fatalf("%s: %v", title, err)
		}
	}
	return o
}

// comparePaper compares the ids of a plan with the rows and columns of a paper's tables, in both directions.
// All that is published is listed.
func comparePaper(t *testing.T, p *plan.Plan, l paperList) {
	t.Helper()
	told := map[string]map[string]bool{} // the axes that are listed, by stage
	for _, table := range l.tables {
		if told[table.stage] == nil {
			told[table.stage] = map[string]bool{}
		}
		for _, axis := range table.axes {
			told[table.stage][axis] = true
		}
		if table.what == "" {
			continue
		}
		want := slices.Compact(slices.Sorted(slices.Values(table.want)))
		axes := axesWith(p, table.stage, want)
		if axes == nil {
			t.Errorf("%s: no axis, or axes, that it has or collapses has the %s %q", table.stage, table.what,
				want)
		}
		for _, axis := range axes {
			told[table.stage][axis] = true
		}
	}
	for _, stage := range l.others {
		told[stage] = nil
	}
	for _, step := range p.Publish {
		axes, listed := told[step.Name]
		if !listed {
			t.Errorf("%s is published and isn't listed", step.Name)
		}
		if axes == nil {
			continue
		}
		_, all := coordsOf(p, step.Name)
		for _, axis := range slices.Sorted(maps.Keys(all)) {
			if len(all[axis]) > 1 && !axes[axis] {
				t.Errorf("%s has the axis %s, which isn't listed", step.Name, axis)
			}
			delete(axes, axis)
		}
		for axis := range axes {
			t.Errorf("%s has no axis %s", step.Name, axis)
		}
		delete(told, step.Name)
	}
	for stage, axes := range told {
		if axes != nil {
			t.Errorf("%s is listed and isn't published", stage)
		}
	}
}

// compareProtocol compares the parameters of a plan, and the images that its sheets ask for, with a paper's.
func compareProtocol(t *testing.T, p *plan.Plan, l paperList, want func(paperValue) string) {
	t.Helper()
	for _, v := range slices.Concat(l.protocols, l.pictures) {
		cells := 0
		for _, c := range p.Cells {
			if c.Step.Name != v.stage || !within(c.Coord, v.at) {
				continue
			}
			cells++
			values := paramsOf(t, c)
			got, ok := values[v.name]
			if v.name == "images" {
				if got, ok = imagesOf(values), true; got == "" {
					continue // of AggAtt, as many as its rows have examples
				}
			}
			if !ok {
				t.Errorf("line %d: %s (%s) has no parameter %s", v.line, v.stage, c.Stage.Name, v.name)
				break
			}
			if got != want(v) {
				t.Errorf("line %d: %s%v has %s %s, and it should be %s", v.line, v.stage, c.Coord, v.name,
					got, want(v))
			}
		}
		if cells == 0 {
			t.Errorf("line %d: there is no cell %s%v", v.line, v.stage, v.at)
		}
	}
}

// within reports whether a place has all coordinates of a list, each written "axis=id".
func within(place []stages.Coord, list []string) bool {
	for _, at := range list {
		if !slices.ContainsFunc(place, func(c stages.Coord) bool { return c.Axis+"="+c.ID == at }) {
			return false
		}
	}
	return true
}

// A fieldValue is a parameter of a cell with its value.
type fieldValue struct {
	stages.Field
	value any
}

func fieldsOf(c *plan.Cell) (out []fieldValue) {
	params := reflect.Indirect(reflect.ValueOf(c.Params))
	for _, f := range stages.Fields(c.Params) {
		out = append(out, fieldValue{f, params.FieldByIndex(f.Index).Interface()})
	}
	return out
}

// paramsOf returns the parameters of a cell as text.
func paramsOf(t *testing.T, c *plan.Cell) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, f := range fieldsOf(c) {
		out[f.Name] = fmt.Sprint(f.value)
		if m, ok := f.value.(encoding.TextMarshaler); ok {
			b, err := m.MarshalText()
			if err != nil {
				t.Fatal(err)
			}
			out[f.Name] = string(b)
		}
	}
	return out
}

// imagesOf returns how many images a sheet with these parameters shows, of as many as there are.
func imagesOf(params map[string]string) string {
	best, _ := strconv.Atoi(params["best"])
	worst, _ := strconv.Atoi(params["worst"])
	if best+worst > 0 {
		return strconv.Itoa(best + worst)
	}
	return params["items"]
}

// coordsOf returns the coordinates of a stage's inputs, and the ids on their axes.
func coordsOf(p *plan.Plan, stage string) (coords []map[string]string, axes map[string]map[string]bool) {
	axes = map[string]map[string]bool{}
	for _, c := range p.Cells {
		if c.Step.Name != stage {
			continue
		}
		for _, in := range c.Inputs {
			for _, e := range in.Edges {
				ids := map[string]string{}
				for _, co := range slices.Concat(c.Coord, e.Coord) {
					ids[co.Axis] = co.ID
					if axes[co.Axis] == nil {
						axes[co.Axis] = map[string]bool{}
					}
					axes[co.Axis][co.ID] = true
				}
				coords = append(coords, ids)
			}
		}
	}
	return coords, axes
}

// axesWith returns the fewest axes on which the inputs of a stage have certain ids and no others, or
// combinations of ids joined by blanks; nil if there are none.
func axesWith(p *plan.Plan, stage string, want []string) []string {
	coords, axes := coordsOf(p, stage)
	names := slices.Sorted(maps.Keys(axes))
	var subsets []int
	for subset := 1; subset < 1<<len(names); subset++ {
		subsets = append(subsets, subset)
	}
	slices.SortStableFunc(subsets, func(a, b int) int {
		return bits.OnesCount(uint(a)) - bits.OnesCount(uint(b))
	})
	for _, subset := range subsets {
		var used []string
		for k, axis := range names {
			if subset>>k&1 == 1 {
				used = append(used, axis)
			}
		}
		got := map[string]bool{}
		for _, ids := range coords {
			var parts []string
			for _, axis := range used {
				if ids[axis] != "" {
					parts = append(parts, ids[axis])
				}
			}
			if len(parts) == len(used) { // an input of another kind, as marks or images, may lack some axes
				got[strings.Join(parts, " ")] = true
			}
		}
		if slices.Equal(slices.Sorted(maps.Keys(got)), want) {
			return used
		}
	}
	return nil
}
