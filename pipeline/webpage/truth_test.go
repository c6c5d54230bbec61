package webpage

import (
	"reflect"
	"testing"

	"github.com/runexp/runexp/pipeline/results"
	"github.com/runexp/runexp/stages"
)

// TestWrong: of two classes with one name, the other one is wrong; an image without a label is neither.
func TestWrong(t *testing.T) {
	payloads := func(at string, classes ...int64) *results.Payloads {
		p := &results.Payloads{At: at}
		for i := range classes {
			p.IDs = append(p.IDs, string(rune('a'+i)))
		}
		p.Load = func(i int) ([]byte, error) { return stages.NewTensor(classes[i:i+1], 1).Encode(), nil }
		return p
	}
	m := &model{itemN: map[string]int{}}
	p := &results.CellMaps{Targets: payloads("t", 0, 0, 1, 2), Truth: payloads("l", 0, 1, -1, 2),
		Prediction: &results.Prediction{Targets: payloads("p", 0, 0, 1, 0)}, Labels: "crane\ncrane\nkite"}
	if _, err := m.classList(p, 4, map[string]int{}); err != nil {
		t.Fatal(err)
	}
	c := m.Classes[0]
	if want := []int{1, 3}; !reflect.DeepEqual(c.Wrong, want) {
		t.Errorf("wrong are %v, want %v", c.Wrong, want)
	}
	if want := []string{"crane", "crane", "", "kite"}; !reflect.DeepEqual(c.True, want) {
		t.Errorf("the labels are %q, want %q", c.True, want)
	}
}
