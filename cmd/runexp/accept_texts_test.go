package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestTextsThatRun: exactly the texts that are new run, wherever their lines stand in the file.
func TestTextsThatRun(t *testing.T) {
	lines := []string{"a,good,1", "b,bad,0", "c,good bad,1", "d,bad film,0", "e,film film,1"}
	for _, e := range []struct {
		name, head string
		lines      []string
		new        int
	}{
		{"nothing", "id,text,label", lines, 0},
		{"append", "id,text,label", append(slices.Clone(lines), "f,film,0"), 1},
		{"in front", "id,text,label", append([]string{"f,film,0", "g,bad bad,0"}, lines...), 2},
		{"delete", "id,text,label", lines[1:4], 0},
		{"reorder", "id,text,label", []string{lines[3], lines[0], lines[4], lines[2], lines[1]}, 0},
		{"replace", "id,text,label", append([]string{"a,film good,1"}, lines[1:]...), 1},
		{"another label", "id,text,label", append([]string{"a,good,0"}, lines[1:]...), 1},
		{"rename", "id,text,label", append([]string{"z,good,1"}, lines[1:]...), 0},
		{"without ids", "other,text,label", lines, 0},
	} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			file := func(head string, lines []string) []byte {
				return []byte(head + "\n" + strings.Join(lines, "\n") + "\n")
			}
			w := newWorld(t, map[string]string{"texts.yaml": `name: texts
stages:
  reviews: {uses: dataset/text, with: {path: reviews.csv, tokenizer: vocab.txt}}
publish: [reviews]
`})
			w.write("vocab.txt", []byte("[PAD]\n[UNK]\n[CLS]\n[SEP]\ngood\nbad\nfilm\n"))
			w.write("reviews.csv", file("id,text,label", lines))
			want(t, w.counting("run", "texts.yaml"), "dataset/text 5")
			w.write("reviews.csv", file(e.head, e.lines))
			ran := ""
			if e.new > 0 {
				ran = fmt.Sprintf("dataset/text %d", e.new)
			}
			want(t, w.counting("run", "texts.yaml", "--accept"), ran)
		})
	}
}
