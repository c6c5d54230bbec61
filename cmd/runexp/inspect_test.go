package main

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/registry"
)

// TestInspectedClasses checks the line about the answer, of one output too.
func TestInspectedClasses(t *testing.T) {
	for _, tt := range []struct {
		classes              int
		sides, probabilities bool
		want                 string
	}{
		{5, false, false, "5; logits"},
		{5, false, true, "5; probabilities, whose logarithms count as logits"},
		{2, true, false, "2, of one output: 1 that it answers for, 0 against it; a logit, whose sigmoid is " +
			"the probability; a regression would look the same"},
		{2, true, true, "2, of one output: 1 that it answers for, 0 against it; a probability, whose " +
			"logarithm counts as logit"},
	} {
		var x registry.Inspection
		x.Feed.Classes, x.Feed.Sides, x.Feed.Probabilities = tt.classes, tt.sides, tt.probabilities
		var b strings.Builder
		if err := inspectionPage().Execute(&b, &x); err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(b.String(), "\nclasses\t")
		line, _, _ := strings.Cut(rest, "\n")
		if line != tt.want {
			t.Errorf("%q, want %q", line, tt.want)
		}
	}
}

// TestUse checks what is printed of a program on a device.
func TestUse(t *testing.T) {
	u := registry.Usage{Program: `gradient of "" by derivative`, Batch: 8, Nodes: 635, Run: 0.25, Cost: 0.123,
		Inputs: registry.Copies{Number: 2, Bytes: 393600}, Outputs: registry.Copies{Number: 3, Bytes: 786816}}
	want := "gradient of 8 rows: 0.25 s a run\n" +
		"\t635 nodes, all on the device\n\treads 393.6 kB, returns 786.8 kB"
	if got := use(u); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	u.Fallbacks = append(u.Fallbacks, registry.Fallback{Operator: "Tan", Nodes: 19},
		registry.Fallback{Operator: "Det", Nodes: 1})
	u.ToHost, u.FromHost = registry.Copies{Number: 30, Bytes: 7404800}, registry.Copies{Number: 20, Bytes: 42}
	u.Computing = 0.2
	want = "gradient of 8 rows: 0.25 s a run, 80% of which the device computes\n" +
		"\t635 nodes, 20 of them on the CPU: Tan 19, Det 1\n" +
		"\tthese, with 30 copies to the CPU (7.4 MB) and 20 back (42 B), take 12% of the time\n" +
		"\treads 393.6 kB, returns 786.8 kB"
	if got := use(u); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestInFloat16 checks what is printed of a program in float16: what computes in it first, by reason.
func TestInFloat16(t *testing.T) {
	got := inFloat16([]registry.Halved{
		{Node: "a", Operator: "Conv", Float16: true, Why: "products"},
		{Node: "b", Operator: "Softmax", Why: "exp exceeds 65504"},
		{Node: "c", Operator: "Gemm", Float16: true, Why: "products"},
		{Node: "d", Operator: "Conv", Float16: true, Why: "products"},
	})
	if want := "float16\tConv 2, Gemm 1:\n\tproducts\nfloat32\tSoftmax 1:\n\texp exceeds 65504"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
