package main

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/plan"
)

// TestSettings holds that each set of overrides has a folder of its own, of a name that every file system
// takes.
func TestSettings(t *testing.T) {
	seen := map[string]int{}
	for i, tt := range []struct {
		o    plan.Overrides
		want string // "" for one with a digest
	}{
		{plan.Overrides{Limit: 4}, "limit=4"},
		{plan.Overrides{Only: []string{"model=vgg", "method=ig,lrp"}, Limit: 4},
			"method=ig,lrp,model=vgg,limit=4"},
		{plan.Overrides{Set: []string{"seed=9"}}, "seed=9"},
		{plan.Overrides{Set: []string{"m.with.path=/data/one/net.onnx"}}, ""},
		{plan.Overrides{Set: []string{"m.with.path=/data-one/net.onnx"}}, ""},
		{plan.Overrides{Set: []string{"../../x=1"}}, ""},
		{plan.Overrides{Set: []string{"a=1", "a=2"}}, "a=1,a=2"},
		{plan.Overrides{Set: []string{"a=2", "a=1"}}, "a=2,a=1"},
		{plan.Overrides{Only: []string{"method=" + strings.Repeat("x", 300)}}, ""},
		{plan.Overrides{Only: []string{"method=" + strings.Repeat("x", 301)}}, ""},
	} {
		got := settings(&tt.o)
		if tt.want != "" && got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.o, got, tt.want)
		}
		if len(got) > longestSettings || strings.ContainsAny(got, "/\\:") || strings.HasPrefix(got, ".") {
			t.Errorf("%+v: a folder can't be called %q", tt.o, got)
		}
		if before, ok := seen[got]; ok {
			t.Errorf("%d and %d share %s", before, i, got)
		}
		seen[got] = i
	}
}
