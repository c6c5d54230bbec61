package publish

import (
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestReadings: a score reads what its stage's parameter says, or what orders the pixels perturbed for it.
func TestReadings(t *testing.T) {
	f := &Folder{Experiment: []byte(`
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
	for _, l := range [][2]string{{"maps", `{"values":"magnitude"}`}, {"rise", `{}`}, {"mixed", `{}`},
		{"deletion", `{"values":"magnitude"}`}, {"insertion", `{"values":"magnitude"}`},
		{"hits", `{"values":["x"]}`}, {"signed", `{"values":"signed"}`}, {"mass", `{"values":"positive"}`},
		{"swept[v=a]", `{"values":"positive"}`}, {"swept[v=b]", `{"values":"signed"}`}} {
		f.Lines = append(f.Lines, &Line{Cell: l[0], Params: []byte(l[1])})
	}
	of := f.Readings()
	for stage, want := range map[string]string{"rise": "magnitude", "mass": "positive", "mixed": "",
		"hits":  "",
		"swept": ""} {
		if of[stage] != want {
			t.Errorf("%s reads %q, want %q", stage, of[stage], want)
		}
	}
	// A stage without scores has no sentence.
	for i, l := range f.Lines {
		if i != 0 {
			l.Means = []Mean{{Direction: stages.Higher}}
		}
	}
	const want = "rise, deletion and insertion read magnitudes: for and against the class counts alike. " +
		"mass reads positive values alone. signed reads signed values."
	if got := f.ReadsText(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
