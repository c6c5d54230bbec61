package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPapersPictures checks that the figures of images in the papers' results show the images that NAME.paper
// lists, as many as it has: with -update the lines "ids" of a list become those of the result.
func TestPapersPictures(t *testing.T) {
	figures := 0
	for _, name := range papers {
		file := "../../experiments/papers/" + name + ".paper"
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		cells, err := filepath.Glob("../../artifacts/" + name + "/cells/*.jsonl")
		if err != nil || len(cells) == 0 {
			t.Errorf("%s: no result is committed (%v)", name, err)
		}
		shown := map[string]map[string][]string{} // by stage, then by place
		for _, c := range cells {
			if list := shownIn(t, c); len(list) > 0 {
				shown[strings.TrimSuffix(filepath.Base(c), ".jsonl")] = list
			}
		}
		if *update {
			text = withIDs(t, string(text), shown)
			if err := os.WriteFile(file, text, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		for _, v := range readPaperList(t, string(text)).pictures {
			for place, want := range v.ids {
				figures++
				got := shown[v.stage][place]
				if !slices.Equal(got, want) {
					t.Errorf("%s: %s[%s] shows %q, and the list has %q", name, v.stage, place, got, want)
				}
				if strconv.Itoa(len(got)) != v.small {
					t.Errorf("%s: %s[%s] shows %d images, and it should show %s", name, v.stage, place,
						len(got), v.small)
				}
				delete(shown[v.stage], place)
			}
		}
		for stage, places := range shown {
			for place := range places {
				t.Errorf("%s: the list has no pictures of %s[%s]", name, stage, place)
			}
		}
	}
	if figures < 20 {
		t.Errorf("only %d figures of images are listed", figures)
	}
}

// shownIn returns the images that the figures of a stage show, by their places.
func shownIn(t *testing.T, file string) map[string][]string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for line := range strings.Lines(string(b)) {
		var l struct {
			Cell  string
			Shown struct{ Items []string }
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(l.Shown.Items) > 0 {
			_, place, _ := strings.Cut(strings.TrimSuffix(l.Cell, "]"), "[")
			out[place] = l.Shown.Items
		}
	}
	return out
}

// withIDs replaces the lines "ids" of a list by those of what is shown.
func withIDs(t *testing.T, text string, shown map[string]map[string][]string) []byte {
	t.Helper()
	var out []string
	stage, at := "", []string(nil)
	write := func() {
		for _, place := range slices.Sorted(maps.Keys(shown[stage])) {
			ids := strings.Split(place, ",")
			if slices.ContainsFunc(at, func(id string) bool { return !slices.Contains(ids, id) }) {
				continue
			}
			out = append(out, strings.TrimSpace("ids "+place)+": "+strings.Join(shown[stage][place], ", "))
		}
		stage = ""
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		inside := strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "+ ") ||
			strings.HasPrefix(line, "ids")
		if !inside {
			write()
		}
		if head, _, ok := strings.Cut(line, ":"); ok && strings.HasPrefix(head, "pictures ") {
			stage, at = placeOfCell(strings.TrimSpace(strings.TrimPrefix(head, "pictures ")))
		}
		if stage == "" || !strings.HasPrefix(line, "ids") {
			out = append(out, line)
		}
	}
	write()
	return []byte(strings.Join(out, "\n") + "\n")
}
