package dataset

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

func numbers(v ...int64) stages.Data {
	var list [][]byte
	for _, x := range v {
		list = append(list, stages.NewTensor([]int64{x}, 1).Encode())
	}
	return stagetest.Items(nil, list...)
}

func probabilities(v ...float64) stages.Data {
	var list [][]byte
	for _, x := range v {
		list = append(list, stages.Scalar(x))
	}
	return stagetest.Items(nil, list...)
}

// TestSelect checks what is kept of eight images of the classes 0, 0, 1, 1, 2, 2, 0, 0.
func TestSelect(t *testing.T) {
	labels := numbers(0, 0, 1, 1, 2, 2, 0, 0)
	right := stagetest.At(numbers(0, 0, 1, 1, 2, 0, 0, 0), "model", "a") // but for item 5
	sure := stagetest.At(probabilities(.99, .98, 1, .995, .5, 1, .99, 1), "model", "a")
	other := stagetest.At(numbers(0, 0, 2, 1, 2, 2, 0, 0), "model", "b") // but for item 2
	unsure := stagetest.At(probabilities(1, 1, 1, .2, 1, 1, 1, math.NaN()), "model", "b")
	images, masks := numbers(10, 11, 12, 13, 14, 15, 16, 17), numbers(20, 21, 22, 23, 24, 25, 26, 27)
	images.Facts = stages.Facts{"height": "8"}
	for _, c := range []struct {
		params SelectParams
		both   bool
		want   string
		counts string
	}{
		{SelectParams{}, false, "0 1 2 3 4 5 6 7", ""},
		{SelectParams{Correct: true}, false, "0 1 2 3 4 6 7", "7 of 8 images are kept, 1 are misclassified"},
		{SelectParams{Correct: true, AtLeast: 0.99}, false, "0 2 3 6 7",
			"5 of 8 images are kept, 1 are misclassified, 2 are below the probability 0.99"},
		{SelectParams{Correct: true, AtLeast: 0.99, PerClass: 2}, false, "0 2 3 6",
			"4 of 8 images are kept, 1 are misclassified, 2 are below the probability 0.99, 1 are beyond 2 " +
				"a class"},
		{SelectParams{Correct: true, PerClass: 1, Count: 2}, false, "0 2",
			"2 of 8 images are kept, 1 are misclassified, 4 are beyond 1 a class, 1 are beyond 2"},
		{SelectParams{Correct: true, AtLeast: 0.99}, true, "0 6",
			"2 of 8 images are kept, 2 are misclassified, 4 are below the probability 0.99"},
	} {
		in := map[string][]stages.Data{"images": {images}, "labels": {labels}, "masks": {masks},
			"targets": {right}, "probability": {sure}}
		if c.both {
			in["targets"], in["probability"] = append(in["targets"], other), append(in["probability"], unsure)
		}
		r := stagetest.Run(t, Select, &c.params, in)
		for port, first := range map[string]int64{"images": 10, "masks": 20} {
			var got []string
			for _, b := range r.Payloads[port] {
				got = append(got, fmt.Sprint(decoded(t, b).Int64s()[0]-first))
			}
			if got := strings.Join(got, " "); got != c.want {
				t.Errorf("%+v: %s %s are kept, want %s", c.params, port, got, c.want)
			}
		}
		if got := strings.Join(r.Warnings, "|"); got != c.counts {
			t.Errorf("%+v: %q, want %q", c.params, got, c.counts)
		}
		if r.Facts["images"]["height"] != "8" || len(r.Payloads["counts"]) != 1 ||
			r.Payloads["boxes"] != nil {
			t.Errorf("%+v: facts %v, %d tables, boxes %v", c.params, r.Facts, len(r.Payloads["counts"]),
				r.Payloads["boxes"])
		}
	}

	none := map[string][]stages.Data{"images": {images}, "labels": {labels}, "targets": {right},
		"probability": {probabilities(0, 0, 0, 0, 0, 0, 0, 0)}}
	_, err := stagetest.Try(Select, &SelectParams{Correct: true, AtLeast: 0.5}, none)
	const want = "no image is left: 0 of 8 images are kept, 1 are misclassified, 7 are below the " +
		"probability 0.5"
	if err == nil || err.Error() != want {
		t.Errorf("without an image left: %v, want %s", err, want)
	}
	none["labels"] = []stages.Data{stagetest.At(labels, "model", "a"), stagetest.At(labels, "model", "b")}
	if _, err := stagetest.Try(Select, nil, none); err == nil ||
		!strings.Contains(err.Error(), `labels differs along "model"`) {
		t.Errorf("labels of two cells: %v", err)
	}
}

// TestSelectMaps checks that an image goes if one of its maps is zero everywhere, that the next of its class
// takes its place, and that the table has a row of it only if maps are wired.
func TestSelectMaps(t *testing.T) {
	one := func(v ...float64) []byte { return stages.NewTensor(v, 1, len(v)).Encode() }
	some, zero, odd := one(0, -1), one(0, 0), one(math.NaN(), 0)
	half := stages.NewTensor([]float32{0, 0, 0, 1e-30}, 2, 1, 2).Encode()
	grad := stagetest.At(stagetest.Items(nil, some, zero, odd, some, half), "method", "grad")
	lig := stagetest.At(stagetest.Items(nil, some, some, some, zero, some), "method", "lig")
	in := map[string][]stages.Data{"images": {numbers(0, 1, 2, 3, 4)}, "labels": {numbers(0, 0, 0, 1, 1)}}
	for _, c := range []struct {
		wired              bool
		kept, counts, rows string
	}{
		{false, "0 1 3 4", "4 of 5 images are kept, 1 are beyond 2 a class",
			"all images correct at_least per_class count"},
		{true, "0 2 4", "3 of 5 images are kept, 2 are explained by a map of zeros",
			"all images correct at_least maps per_class count"},
	} {
		if c.wired {
			in["maps"] = []stages.Data{grad, lig}
		}
		r := stagetest.Run(t, Select, &SelectParams{PerClass: 2}, in)
		var kept, rows []string
		for _, b := range r.Payloads["images"] {
			kept = append(kept, fmt.Sprint(decoded(t, b).Int64s()[0]))
		}
		counts, err := stages.DecodeTable(r.Payloads["counts"][0])
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range counts.Rows {
			rows = append(rows, row.Keys[0])
		}
		if got := strings.Join(kept, " "); got != c.kept {
			t.Errorf("maps %v: %s are kept, want %s", c.wired, got, c.kept)
		}
		if got := strings.Join(r.Warnings, "|"); got != c.counts {
			t.Errorf("maps %v: %q, want %q", c.wired, got, c.counts)
		}
		if got := strings.Join(rows, " "); got != c.rows {
			t.Errorf("maps %v: the rows %s, want %s", c.wired, got, c.rows)
		}
	}
}

// TestSelectLacks checks which ports have items.
func TestSelectLacks(t *testing.T) {
	wired := func(port string) bool { return port == "images" || port == "masks" }
	for port, lacks := range map[string]bool{"images": false, "masks": false, "boxes": true, "labels": true,
		"counts": false} {
		if err := Select.HooksOf(Select.NewParams()).Lacks(port, wired); (err != nil) != lacks {
			t.Errorf("%s: %v", port, err)
		}
	}
}

// TestSelectChecks checks which criteria need which inputs.
func TestSelectChecks(t *testing.T) {
	for _, c := range []struct {
		params SelectParams
		wired  string
		want   string
	}{
		{SelectParams{Correct: true}, "images labels targets", ""},
		{SelectParams{Correct: true}, "images targets", "isn't known without labels"},
		{SelectParams{Correct: true}, "images labels", "wire model or targets"},
		{SelectParams{Correct: true, AtLeast: 0.5}, "images labels model", ""},
		{SelectParams{AtLeast: 0.5}, "images", "wire model or probability"},
		{SelectParams{PerClass: 1}, "images", "wire model or targets"},
		{SelectParams{PerClass: 1}, "images labels", ""},
		{SelectParams{Count: 1}, "images", ""},
	} {
		err := Select.Check(&c.params, func(port string) bool {
			return strings.Contains(" "+c.wired+" ", " "+port+" ")
		})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v with %s: %v, want %q", c.params, c.wired, err, c.want)
		}
	}
}

// TestSelectWrong checks criteria other than right and sure, of six images with the labels 0, 0, 1, 1, 2 and
// none.
func TestSelectWrong(t *testing.T) {
	images := numbers(0, 1, 2, 3, 4, 5)
	labels := numbers(0, 0, 1, 1, 2)
	labels.Facts = stages.Facts{"labels": "cat\ndog\ngnu"}
	a := stagetest.At(numbers(0, 1, 1, 2, 1, 0), "model", "a") // wrong of 1, 3, 4
	b := stagetest.At(numbers(1, 1, 1, 2, 2, 0), "model", "b") // wrong of 0, 1, 3
	sureA := stagetest.At(probabilities(.9, .5, .7, .5, .2, math.NaN()), "model", "a")
	sureB := stagetest.At(probabilities(.1, .7, .3, .7, .9, .1), "model", "b")
	for _, c := range []struct {
		params SelectParams
		both   bool
		want   string // the images, the count and its table
	}{
		{SelectParams{Correct: true, Wrong: true}, false,
			"1 3 4: 3 of 6 images are kept, 3 are not misclassified: wrong 3 at_least 0"},
		{SelectParams{Wrong: true}, true,
			"1 3: 2 of 6 images are kept, 4 are not misclassified: wrong 4 at_least 0"},
		{SelectParams{AtMost: 0.5}, false,
			"1 3 4: 3 of 6 images are kept, 3 are above the probability 0.5: correct 0 at_least 0 at_most 3"},
		{SelectParams{AtMost: 0.7}, true,
			"1 2 3: 3 of 6 images are kept, 3 are above the probability 0.7: correct 0 at_least 0 at_most 3"},
		{SelectParams{LeastSure: 2}, false,
			"1 4: 2 of 6 images are kept, 4 are surer than the 2 of least probability: correct 0 " +
				"at_least 0 least_sure 4"},
		// The means over both are .5, .6, .5, .6, .55 and undefined.
		{SelectParams{LeastSure: 3}, true,
			"0 2 4: 3 of 6 images are kept, 3 are surer than the 3 of least probability: correct 0 " +
				"at_least 0 least_sure 3"},
		{SelectParams{Classes: []string{"dog", "2"}}, false,
			"2 3 4: 3 of 6 images are kept, 3 are of other classes: correct 0 at_least 0 classes 3"},
		{SelectParams{Wrong: true, Classes: []string{"cat", "dog"}, LeastSure: 1}, false,
			"1: 1 of 6 images are kept, 3 are not misclassified, 1 are of other classes, " +
				"1 are surer than the 1 of least probability: wrong 3 at_least 0 classes 1 least_sure 1"},
	} {
		in := map[string][]stages.Data{"images": {images}, "labels": {labels}, "targets": {a},
			"probability": {sureA}}
		if c.both {
			in["targets"], in["probability"] = append(in["targets"], b), append(in["probability"], sureB)
		}
		r := stagetest.Run(t, Select, &c.params, in)
		var kept, rows []string
		for _, b := range r.Payloads["images"] {
			kept = append(kept, fmt.Sprint(decoded(t, b).Int64s()[0]))
		}
		table, err := stages.DecodeTable(r.Payloads["counts"][0])
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range table.Rows[1:] {
			if row.Keys[0] != "per_class" && row.Keys[0] != "count" {
				rows = append(rows, fmt.Sprintf("%s %v", row.Keys[0], row.Numbers[0]))
			}
		}
		got := fmt.Sprintf("%s: %s: %s", strings.Join(kept, " "), strings.Join(r.Warnings, "|"),
			strings.Join(rows, " "))
		if got != c.want {
			t.Errorf("%+v:\n%s, want\n%s", c.params, got, c.want)
		}
	}
	in := map[string][]stages.Data{"images": {images}, "labels": {labels}, "targets": {a}}
	for want, p := range map[string]SelectParams{
		`no class is called "fox"`: {Classes: []string{"fox"}},
		`no class is called "3"`:   {Classes: []string{"3"}},
	} {
		_, err := stagetest.Try(Select, &p, in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", p, err, want)
		}
	}
	_, err := stagetest.Try(Select, &SelectParams{Wrong: true, Classes: []string{"gnu"}, PerClass: 1},
		map[string][]stages.Data{"images": {images}, "labels": {labels}, "targets": {labels}})
	const want = "no image is left: 0 of 6 images are kept, 6 are not misclassified"
	if err == nil || err.Error() != want {
		t.Errorf("without a wrong image: %v, want %s", err, want)
	}
	for want, p := range map[string]SelectParams{
		"without labels":                {Wrong: true},
		"is less than at_least":         {AtLeast: 0.5, AtMost: 0.4},
		"how sure a model is":           {AtMost: 0.4},
		"isn't known: wire model or ta": {Classes: []string{"a"}},
		"isn't known: wire model or pr": {LeastSure: 3},
	} {
		if err := Select.Check(&p, func(string) bool { return false }); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", p, err, want)
		}
	}
}
