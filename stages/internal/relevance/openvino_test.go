package relevance

import (
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// wrongInBFloat16 are examples that OpenVINO computes wrongly: the step that is Relu's derivative, which
// package lower emits otherwise, and a Resize that ignores exclude_outside.
var wrongInBFloat16 = []string{"Relu, any", "Resize, cubic, of what is inside"}

// failsInBFloat16 are examples that its plugin refuses: programs that only return an input, and reductions
// whose attribute axes it ignores.
var failsInBFloat16 = []string{"Dropout, plain", "Dropout, off", "Max, one", "Min, one", "Sum, one",
	"ReduceL1, the last", "ReduceL1, places", "ReduceLogSumExp, the last", "ReduceLogSumExp, places"}

// TestExamplesInBFloat16 runs every example of every operator and its derivative in bfloat16.
func TestExamplesInBFloat16(t *testing.T) {
	d := stages.Device{Class: "cpu", Threads: 1, Precision: stages.BFloat16}
	if err := library(t).Has(d); err != nil {
		stagetest.LacksDevice(t, err)
	}
	elsewhere{device: d, wrong: wrongInBFloat16, fails: failsInBFloat16,
		rules:  func(*testing.T, *Op, Example) []Policy { return []Policy{Derivative()} },
		within: func(string) float64 { return 0.03 }}.compareAll(t)
}
