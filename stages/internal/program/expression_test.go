package program

import (
	"reflect"
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
		{"predicted", classes(1, -1), true, false},
		{"predicted:1", classes(1, -1), true, false},
		{"predicted:2", classes(3, -1), true, false},
		{"predicted:5", classes(4, -1), true, false},
		{"label", classes(2, -1), false, true},
		{"0", classes(0, -1), false, false},
		{"4-2", classes(4, 2), false, false},
		{"predicted-predicted:2", classes(1, 3), true, false},
		{"label-predicted", classes(2, 1), true, true},
		{"predicted:3-0", classes(2, 0), true, false},
	} {
		e, err := ParseExpression(tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		got, err := e.Target(row, label, len(row))
		if err != nil || !reflect.DeepEqual(got, tt.want) || e.Predicts() != tt.predicts ||
			e.Labelled() != tt.labelled {
			t.Errorf("%s: %+v, predicts %v, labelled %v, error %v", tt.text, got, e.Predicts(), e.Labelled(),
				err)
		}
		if back, err := TargetOf(got.Payload(), len(row)); err != nil || !reflect.DeepEqual(back, got) {
			t.Errorf("%s: the payload reads %+v, %v", tt.text, back, err)
		}
	}
}

func TestExpressionRefuses(t *testing.T) {
	for _, text := range []string{
		"", "predcited", "predicte", "predicted:x", "label-", "-1", "1-", "+1", "1.5", "1-2-3",
		"predicted:0", "predicted:", "predicted:+2",
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

func TestExpressionNames(t *testing.T) {
	const synsets = "n01440764 tench, Tinca tinca\nn01443537 goldfish, Carassius auratus\nn02012849 crane\n" +
		"n02106662 German shepherd, German shepherd dog\nn03126707 crane\nlabel-maker"
	const folders = "apple_pie\nsushi"
	row, label := []float32{0, 4, 1, 3, 2, 0}, stages.NewTensor([]int64{2}, 1).Encode()
	for text, want := range map[string]Target{
		"tench": classes(0, -1), "Tinca tinca": classes(0, -1), "n01443537": classes(1, -1),
		"goldfish":        classes(1, -1),
		"german_shepherd": classes(3, -1), "German shepherd, German shepherd dog": classes(3, -1),
		"n03126707":   classes(4, -1),
		"label-maker": classes(5, -1), "tench - goldfish": classes(0, 1), "predicted - tench": classes(1, 0),
		"label - goldfish": classes(2, 1),
		"4 - tench":        classes(4, 0), "sushi": classes(1, -1), "Apple pie": classes(0, -1),
		"predicted - 3": classes(1, 3),
	} {
		e, err := ParseExpression(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if e, err = e.Resolve("", synsets, folders); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := e.Target(row, label, len(row)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"tensh":        `no class is called "tensh": did you mean "tench"?`,
		"crane":        `several classes are called "crane", such as 2 and 4: give a number`,
		"steam engine": `no class is called "steam engine", of 8 such as "n01440764 tench, Tinca tinca"`,
	} {
		e, err := ParseExpression(text)
		if err == nil {
			_, err = e.Resolve(synsets, folders)
		}
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	e, err := ParseExpression("tench")
	if err == nil {
		_, err = e.Resolve("", "")
	}
	if err == nil || !strings.HasPrefix(err.Error(), "no names of classes are known") {
		t.Error(err)
	}
}

// TestAnyNames holds that names that aren't known yet stand for a class, which differs from the one that it
// is compared with.
func TestAnyNames(t *testing.T) {
	for text, want := range map[string]Target{
		"sushi": classes(0, -1), "sushi - ramen": classes(0, 1), "0 - ramen": classes(0, 1),
		"ramen - 0":        classes(1, 0),
		"5 - ramen":        classes(5, 0),
		"goldfish - ramen": classes(1, 0), "ramen - goldfish": classes(0, 1), "tench - ramen": classes(0, 1),
		"ramen - tench": classes(1, 0),
	} {
		e, err := ParseExpression(text)
		if err == nil {
			e, err = e.Resolve("tench\ngoldfish", AnyNames)
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := e.Target(make([]float32, 6), nil, 6); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
	}
}

// classes returns a target of one class, or of the difference of two.
func classes(class, minus int) Target { return Target{Class: class, Minus: minus} }
