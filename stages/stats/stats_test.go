package stats

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

var nan = math.NaN()

// cell returns one cell of scores.
func cell(d stages.Direction, scores []float64, coord ...string) stages.Data {
	var payloads [][]byte
	for _, x := range scores {
		payloads = append(payloads, stages.Scalar(x))
	}
	m := stages.Measure{Unit: "probability", Direction: d, High: 1, Tolerance: 1e-4}
	return stagetest.At(stagetest.Items(m.Facts(nil), payloads...), coord...)
}

// ramp returns n scores base + step·(1, 2, …, n), each with a different distance to any other ramp's.
func ramp(n int, base, step float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = base + step*float64(i+1)
	}
	return out
}

func run(t *testing.T, s stages.Stage, params any, cells ...stages.Data) (stages.Table, string) {
	t.Helper()
	r := stagetest.Run(t, s, params, map[string][]stages.Data{"scores": cells})
	table, err := stages.DecodeTable(r.Payloads["table"][0])
	if err != nil {
		t.Fatal(err)
	}
	if r.Facts["answer"]["ext"] != "md" {
		t.Error("the answer isn't markdown")
	}
	return table, string(r.Payloads["answer"][0])
}

// text formats rows as "keys | numbers".
func text(t stages.Table) string {
	var b strings.Builder
	for _, r := range t.Rows {
		b.WriteString(strings.Join(r.Keys, " ") + " |")
		for i, n := range r.Numbers {
			fmt.Fprintf(&b, " %.*f", t.Numbers[i].Digits, float64(n))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s is\n%s\nwant\n%s", what, got, want)
	}
}
