package main

import (
	"errors"
	"slices"
	"testing"

	"github.com/runexp/runexp/pipeline/plan"
)

// Each of the first reasons has one line, and every cell that failed is named or counted.
func TestReasons(t *testing.T) {
	failures := func(yield func(*plan.Cell, error) bool) {
		for i, text := range []string{"no file", "no memory", "no file", "lost", "NaN", "no file", "zero"} {
			c := &plan.Cell{Step: &plan.Step{Name: string(rune('a' + i))}}
			if !yield(c, errors.New(text)) {
				return
			}
		}
	}
	want := []string{"a and 2 more: no file", "b: no memory", "d: lost", "2 cells more, for other reasons"}
	if got := reasons(failures); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
