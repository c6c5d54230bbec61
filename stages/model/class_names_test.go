package model

import (
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/modelfile"
)

// TestClassNames checks which names of a file are taken for the classes of a model.
func TestClassNames(t *testing.T) {
	two := modelfile.Spec{Classes: 2, Sides: true}
	for _, tt := range []struct {
		names []string
		spec  modelfile.Spec
		want  []string
	}{
		{[]string{"dog"}, two, []string{"not dog", "dog"}},
		{[]string{"cat", " big\tdog "}, two, []string{"cat", "big dog"}},
		{[]string{"cat", "dog", "cow"}, two, nil},
		{[]string{"cat", "dog"}, modelfile.Spec{Classes: 2}, []string{"cat", "dog"}},
		{[]string{"dog"}, modelfile.Spec{Classes: 2}, nil},
		{nil, modelfile.Spec{Classes: 2}, nil},
	} {
		if got := (Declared{Names: tt.names}).classNames(tt.spec); !slices.Equal(got, tt.want) {
			t.Errorf("%q for %+v: %q, not %q", tt.names, tt.spec, got, tt.want)
		}
	}
}
