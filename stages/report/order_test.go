package report

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// shownIn runs a stage with a given order of ids, and returns one of its outputs.
func shownIn(t *testing.T, order stages.Order, s stages.Stage, params any, in map[string][]stages.Data,
	port string) []byte {
	t.Helper()
	e, err := stagetest.Env(&s, in)
	if err != nil {
		t.Fatal(err)
	}
	if e.Order = order; params == nil {
		params = s.NewParams()
	}
	if err := s.Run(context.Background(), params, e); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(e.Outputs, func(o stages.Output) bool { return o.Port == port })
	return e.Outputs[at].Data
}

// TestShownAsWritten checks that rows, columns, lines and panels follow the experiment's order of ids, even
// if the first of them has gaps, and that ties are broken by it.
func TestShownAsWritten(t *testing.T) {
	order := stages.Order{"model": {"vit", "vgg"}, "method": {"rise", "ig"},
		"metric": {"insertion", "deletion", "time"}}
	table := func(b []byte) string {
		t.Helper()
		got, err := stages.DecodeTable(b)
		if err != nil {
			t.Fatal(err)
		}
		return text(got)
	}
	values := map[string][]stages.Data{"values": grid()}
	const want = "method|model|mean|low|high|n|undefined\nrise|vgg|-|-|-|0|3\nig|vit|0.5|0|1|2|1\n" +
		"ig|vgg|0.5|0.1|0.9|3|0\n"
	if got := table(shownIn(t, order, Table, nil, values, "table")); got != want {
		t.Errorf("rows:\n%swant\n%s", got, want)
	}
	across := &TableParams{Statistic: "mean", Columns: []string{"model"}}
	if got, want := table(shownIn(t, order, Table, across, values,
		"table")), "method|vit|vgg|n|undefined\nrise|-|-|0|3\nig|0.5|0.5|2|1\n"; got != want {
		t.Errorf("columns:\n%swant\n%s", got, want)
	}

	scores := map[string][]stages.Data{"scores": contest()}
	if got := table(shownIn(t, order, Leaderboard, nil, scores, "leaderboard")); !strings.HasPrefix(got,
		"method|mean rank|first|insertion|insertion not confirmed|deletion|deletion not confirmed|time|n|"+
			"undefined\nrise|1.25|") {
		t.Errorf("cases:\n%s", got)
	}
	answer := regexp.MustCompile(`In insertion, \*\*rise\*\* [^.]*\*\*ig\*\*[^.]*\. In deletion,`)
	if got := string(shownIn(t, order, Leaderboard, nil, scores, "answer")); !answer.MatchString(got) {
		t.Errorf("the answer is %s", got)
	}

	var panel []*plotLine
	for _, id := range []string{"a", "b", "c"} {
		panel = append(panel, &plotLine{coord: []stages.Coord{{Axis: "method", ID: id}}})
	}
	names := lineNames([][]*plotLine{panel}, stages.Order{"method": {"c", "a"}}, "method")
	if want := []string{"c", "a", "b"}; !slices.Equal(names, want) {
		t.Errorf("the legend has %v, want %v", names, want)
	}

	in := shapes(t, 1, 32)
	maps := map[string][]stages.Data{"maps": mapsOf(in["masks"], 32), "images": {in["images"]}}
	sorted := shownIn(t, nil, Sheet, nil, maps, "figure")
	if got := shownIn(t, stages.Order{"method": {"ig", "noise", "occlusion", "saliency", "zero"}}, Sheet, nil,
		maps, "figure"); string(got) != string(sorted) {
		t.Error("a sheet that is written in the order of its ids isn't the sorted one")
	}
	if got := shownIn(t, stages.Order{"method": {"zero", "ig", "noise", "occlusion", "saliency"}}, Sheet, nil,
		maps, "figure"); string(got) == string(sorted) {
		t.Error("a sheet has no other columns when its axis is written in another order")
	}
}
