package main

import (
	"fmt"
	"maps"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/registry"
)

// papers are the experiments of experiments/papers.
var papers = []string{
	"abslrp-ablation", "abslrp-explained", "abslrp-gae-resnet", "abslrp-gae-vgg", "abslrp-gae-vit",
	"abslrp-metrics", "abslrp-sheets", "abslrp-toy", "difull-aggatt", "difull-quantitative", "difull-sheets",
	"difull-smoothing", "mas-baseline-invariance", "mas-consistency", "mas-curves", "mas-ranking",
	"mas-sensitivity", "metarank-cases", "metarank-checkpoints", "metarank-consistency",
	"metarank-leaderboard", "metarank-road",
}

// TestPapers checks that each experiment of the papers has nothing wrong with it, as it stands and as the
// commands in its head run it, and that its tables have the rows and columns of the paper's.
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
			for _, command := range []string{"CI", "Paper scale"} {
				loadPaper(t, file, headCommand(t, text, command, name))
			}
			lists, err := os.ReadFile("../../experiments/papers/" + name + ".paper")
			if err != nil {
				t.Fatal(err)
			}
			comparePaper(t, p, string(lists))
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
// A list names a table's stage, and its rows and columns as the paper has them. A line "- id: why" lists one
// that the experiment lacks, "+ id: why" one that it adds, "axis name: why" an axis of the stage along which
// the paper has neither rows nor columns. All that is published is listed, by "other stage: why" where the
// paper has no such table.
func comparePaper(t *testing.T, p *plan.Plan, lists string) {
	t.Helper()
	var stage, what string
	var want map[string]bool
	told := map[string]map[string]bool{} // the axes that are listed, by stage
	compare := func() {
		if what != "" {
			axes := axesWith(p, stage, slices.Sorted(maps.Keys(want)))
			if axes == nil {
				t.Errorf("%s: no axis, or axes, that it has or collapses has the %s %q", stage, what,
					slices.Sorted(maps.Keys(want)))
			}
			for _, axis := range axes {
				told[stage][axis] = true
			}
		}
		what = ""
	}
	for i, line := range strings.Split(lists, "\n") {
		line = strings.TrimSpace(line)
		head, rest, colon := strings.Cut(line, ":")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "table "):
			compare()
			stage = strings.TrimSpace(strings.TrimPrefix(line, "table "))
			if told[stage] == nil {
				told[stage] = map[string]bool{}
			}
		case colon && strings.HasPrefix(head, "other ") && strings.TrimSpace(rest) != "":
			compare()
			told[strings.TrimSpace(head[6:])] = nil
		case colon && stage != "" && strings.HasPrefix(head, "axis ") && strings.TrimSpace(rest) != "":
			compare()
			told[stage][strings.TrimSpace(head[5:])] = true
		case colon && (head == "rows" || head == "columns"):
			compare()
			what, want = head, map[string]bool{}
			for id := range strings.SplitSeq(rest, ",") {
				want[strings.TrimSpace(id)] = true
			}
		case colon && what != "" && strings.TrimSpace(rest) != "" && strings.HasPrefix(head, "- "):
			id := strings.TrimSpace(head[2:])
			if !want[id] {
				t.Errorf("line %d: the paper has no %s", i+1, id)
			}
			delete(want, id)
		case colon && what != "" && strings.TrimSpace(rest) != "" && strings.HasPrefix(head, "+ "):
			want[strings.TrimSpace(head[2:])] = true
		default:
			t.Errorf("line %d is neither a table, nor rows, columns or a reason: %s", i+1, line)
		}
	}
	compare()
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
