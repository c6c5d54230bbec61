package program

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

func TestExpression(t *testing.T) {
	row := []float32{0.1, 0.9, 0.4, 0.9, -2} // classes by answer: 1, 3, 2, 0, 4
	label := stages.NewTensor([]int64{2}, 1).Encode()
	for _, tt := range []struct {
		text     string
		want     Target
		predicts bool
		labelled bool
	}{
		{"predicted", Target{1, -1}, true, false},
		{"predicted:1", Target{1, -1}, true, false},
		{"predicted:2", Target{3, -1}, true, false},
		{"predicted:5", Target{4, -1}, true, false},
		{"label", Target{2, -1}, false, true},
		{"0", Target{0, -1}, false, false},
		{"4-2", Target{4, 2}, false, false},
		{"predicted-predicted:2", Target{1, 3}, true, false},
		{"label-predicted", Target{2, 1}, true, true},
		{"predicted:3-0", Target{2, 0}, true, false},
	} {
		e, err := ParseExpression(tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		got, err := e.Target(row, label, len(row))
		if err != nil || got != tt.want || e.Predicts() != tt.predicts || e.Labelled() != tt.labelled {
			t.Errorf("%s: %+v, predicts %v, labelled %v, error %v", tt.text, got, e.Predicts(), e.Labelled(),
				err)
		}
		if back, err := TargetOf(got.Payload(), len(row)); err != nil || back != got {
			t.Errorf("%s: the payload reads %+v, %v", tt.text, back, err)
		}
	}
}

func TestExpressionRefuses(t *testing.T) {
	for _, text := range []string{
		"", "best", "-1", "1-", "+1", "1.5", "1-2-3", "predicted:0", "predicted:", "predicted:+2",
		"predicted:-1",
		"label:2", "7-7", "predicted-predicted:1", "99999999999999999999",
	} {
		if e, err := ParseExpression(text); err == nil {
			t.Errorf("%q was read as %+v", text, e)
		}
	}
	row := []float32{3, 2}
	for text, want := range map[string]string{
		"2":           "class 2 is not one of the model's 2",
		"predicted:3": "predicted:3: the model has 2 classes",
		"label":       "class 5 is not one of the model's 2",
		"predicted-0": "both classes of the difference are class 0, which explains nothing; " +
			"predicted-predicted:2 always has two",
	} {
		e, err := ParseExpression(text)
		if err == nil {
			_, err = e.Target(row, stages.NewTensor([]int64{5}, 1).Encode(), 2)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
}

func TestExpressionFits(t *testing.T) {
	for text, fits := range map[string]bool{
		"9": true, "10": false, "predicted": true, "predicted:10": true, "predicted:11": false, "label": true,
		"label-9": true, "label-10": false, "10-predicted": false, "predicted-predicted:11": false,
	} {
		e, err := ParseExpression(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Fits(10); (err == nil) != fits {
			t.Errorf("%s of 10 classes: %v", text, err)
		}
	}
}
