package chart

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestPageColours checks that the page of a review folder draws maps in the colours of sheets.
func TestPageColours(t *testing.T) {
	b, err := os.ReadFile("../../../pipeline/webpage/assets/maps.js")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(b)), "")
	for name, m := range map[string]ColourMap{"sequential": Sequential(), "diverging": Diverging()} {
		want := name + ":["
		for _, c := range m.stops {
			want += fmt.Sprintf("[%d,%d,%d],", c.R, c.G, c.B)
		}
		if !strings.Contains(text, want+"]") && !strings.Contains(text, strings.TrimSuffix(want, ",")+"]") {
			t.Errorf("the page's %s colours aren't %s]", name, want)
		}
	}
}
