package plan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBadExperiments reads files of experiments, separated by lines ---. The diagnostics of a line must be
// those that the line itself lists behind ###.
func TestBadExperiments(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for chunk := range strings.SplitSeq(string(data), "\n---\n") {
			// Empty lines in front, so that diagnostics have the file's line numbers.
			checkAnnotated(t, file, at, strings.Repeat("\n", at)+chunk)
			at += strings.Count(chunk, "\n") + 2
		}
	}
}

func checkAnnotated(t *testing.T, file string, at int, text string) {
	t.Helper()
	want := map[int][]string{}
	for i, line := range strings.Split(text, "\n") {
		for _, msg := range strings.Split(line, " ### ")[1:] {
			want[i+1] = append(want[i+1], strings.TrimSpace(msg))
		}
	}
	ds := diagsOf(t, paperCatalog(), text, Overrides{})
	for _, d := range ds {
		found := false
		for i, msg := range want[d.Line] {
			if strings.Contains(d.Msg, msg) {
				want[d.Line] = append(want[d.Line][:i], want[d.Line][i+1:]...)
				found = true
				break
			}
		}
		if !found {
			t.Errorf("%s, experiment at line %d: unexpected\n%v", file, at+1, d)
		}
		if d.Col < 1 || !strings.Contains(text, d.Text) {
			t.Errorf("%s:%d: a diagnostic without a place: %v", file, d.Line, d)
		}
	}
	for line, msgs := range want {
		for _, msg := range msgs {
			t.Errorf("%s:%d: no diagnostic %q", file, line, msg)
		}
	}
}
