package key

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

// TestHasherInPieces: the digest is that of all fields, however many they are, and
// also of a hasher that was used before.
func TestHasherInPieces(t *testing.T) {
	for _, n := range []int{0, 10, gathered / 48, gathered/48 + 1, 5000, 3} {
		h := NewHasher("test")
		var want []byte
		text := func(s string) {
			want = binary.LittleEndian.AppendUint64(want, uint64(len(s)))
			want = append(want, s...)
		}
		text(keyFormat)
		text("test")
		for i := range n {
			h.Num(i)
			want = binary.LittleEndian.AppendUint64(want, uint64(i))
			d := stages.Sum([]byte{byte(i)})
			h.Digest(d)
			want = append(want, d[:]...)
			if i%100 == 0 {
				s := strings.Repeat("x", 7*i)
				h.Text(s)
				text(s)
			}
		}
		if got := h.Sum(); got != stages.Sum(want) {
			t.Errorf("%d fields: another digest", n)
		}
	}
}

type addedParams struct {
	By   int    `yaml:"by" doc:"old"`
	Unit string `yaml:"unit" key:"added" doc:"new"`
	Also int    `yaml:"also" key:"added" doc:"new"`
	Name string `yaml:"name" key:"-" doc:"in no key"`
}

// TestAddedParameters: an added parameter is part of a key where it isn't the default.
func TestAddedParameters(t *testing.T) {
	s := stages.New(stages.Def[addedParams]{Name: "lab/added", Defaults: addedParams{By: 1, Unit: "pixel"}})
	for want, p := range map[string]addedParams{
		`{"by":1}`:                           {By: 1, Unit: "pixel"},
		`{"by":1,"unit":""}`:                 {By: 1, Name: "a"},
		`{"also":-2,"by":1}`:                 {By: 1, Unit: "pixel", Also: -2},
		`{"also":3,"by":0,"unit":"segment"}`: {Unit: "segment", Also: 3},
	} {
		if got := string((&Params{}).Encode(nil, &s, &p)); got != want {
			t.Errorf("%+v is %s, want %s", p, got, want)
		}
	}
}

// TestVersionOfInputs: the version of an added input counts where the input is wired.
func TestVersionOfInputs(t *testing.T) {
	s := stages.Stage{}
	s.Version = 3
	s.Inputs = []stages.Port{{Name: "scores"}, {Name: "exact", Optional: true, Added: true, Version: 2}}
	one := []plan.Edge{{}}
	for want, edges := range map[int][][]plan.Edge{3: {one, nil}, 5: {one, one}} {
		if got := (&Identity{Cell: &plan.Cell{Stage: &s}, Edges: edges}).version(); got != want {
			t.Errorf("the version with %d edges of the added input is %d, want %d", len(edges[1]), got, want)
		}
	}
}
