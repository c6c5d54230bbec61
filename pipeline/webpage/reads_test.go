package webpage

import (
	"testing"

	"github.com/runexp/runexp/pipeline/publish"
)

// TestReads: a score reads what its stage's parameter says, or what orders the pixels perturbed for it.
func TestReads(t *testing.T) {
	f := &publish.Folder{Experiment: []byte(`
stages:
  maps: {uses: attribute/lrp}
  deletion: {uses: perturb/deletion, in: {maps: maps}}
  insertion: {uses: perturb/insertion, in: {maps: maps}}
  rise: {uses: score/rise, in: {insertion: insertion, deletion: deletion.curves}}
  mixed: {uses: score/rise, in: {insertion: insertion, deletion: signed}}
  signed: {uses: perturb/deletion, in: {maps: maps}}
  mass: {uses: score/mass, in: {maps: maps}}
  hits: {uses: score/hits, in: {maps: maps}}
  swept: {uses: score/mass, in: {maps: maps}}
`)}
	for cell, params := range map[string]string{"maps": `{"values":"magnitude"}`, "rise": `{}`, "mixed": `{}`,
		"deletion": `{"values":"magnitude"}`, "insertion": `{"values":"magnitude"}`, "hits": `{"values":["x"]}`,
		"signed": `{"values":"signed"}`, "mass": `{"values":"positive"}`,
		"swept[v=a]": `{"values":"positive"}`, "swept[v=b]": `{"values":"signed"}`} {
		f.Lines = append(f.Lines, &publish.Line{Cell: cell, Params: []byte(params)})
	}
	m := &model{}
	want := map[string]string{"rise": "magnitude", "mass": "positive", "mixed": "", "hits": "",
		"swept[v=a]": ""}
	for cell := range want {
		m.Scores = append(m.Scores, &score{Name: cell, Cells: []*scored{{Cell: cell}}})
	}
	m.setReads(f)
	for _, s := range m.Scores {
		if s.Reads != want[s.Name] {
			t.Errorf("%s reads %q, want %q", s.Name, s.Reads, want[s.Name])
		}
	}
}
