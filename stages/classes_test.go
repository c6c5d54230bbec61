package stages

import (
	"strings"
	"testing"
)

// TestUnlikeClasses: labels of fewer classes than a model has are told, and nothing else: the largest model
// and the smallest data set count, and what has no number doesn't.
func TestUnlikeClasses(t *testing.T) {
	s := New(Def[struct{}]{Inputs: []Port{{Name: "model", Type: Model}, {Name: "labels", Type: Labels},
		{Name: "images", Type: Images}}})
	of := func(counts ...string) (list []Data) {
		for _, c := range counts {
			list = append(list, Data{Facts: Facts{"classes": c}})
		}
		return list
	}
	for _, tt := range []struct {
		model, labels []Data
		told          string
	}{
		{of("1000"), of("100"), "100 classes, numbered from 0, and the model has 1000"},
		{of("12", "1000"), of("12"), "12 classes, numbered from 0, and the model has 1000"},
		{of("12"), of("12"), ""},
		{of("12"), of("20"), ""},
		{of("1000"), of(""), ""},
		{nil, of("3"), ""},
		{of("3"), nil, ""},
	} {
		got := UnlikeClasses(&s, map[string][]Data{"model": tt.model, "labels": tt.labels, "images": of("1")})
		if !strings.Contains(got, tt.told) || (got == "") != (tt.told == "") {
			t.Errorf("%v, %v: %q, want %q", tt.model, tt.labels, got, tt.told)
		}
	}
}
