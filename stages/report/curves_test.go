package report

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/interval"
	"github.com/runexp/runexp/stages/stagetest"
)

func manyCurves() []stages.Data {
	var c []stages.Data
	for i, method := range []string{"random", "ig", "occlusion", "rise"} {
		for _, model := range []string{"vgg", "vit"} {
			for _, order := range []string{"morf", "insertion"} {
				c = append(c,
					curvesOf(20, 32, order, 1.5+2*float64(i), 0.05, "method", method, "model", model, "order",
						order))
			}
		}
	}
	return c
}

func TestCurvesFigure(t *testing.T) {
	for name, tc := range map[string]struct {
		p      CurvesParams
		curves []stages.Data
		want   []string // texts of the figure
	}{
		"facets": {CurvesParams{Line: "method", Response: "probability", Band: "interval", Columns: 2},
			manyCurves(), []string{">random<", ">rise<"}},
		"paired": {CurvesParams{Line: "method", Response: "logit", Band: "paired", Columns: 4}, manyCurves(),
			[]string{">logit<", ">occlusion<"}},
		"alone": {CurvesParams{Response: "correct", Band: "none", Columns: 3, Title: "Decay",
			Reference: "start"},
			[]stages.Data{curvesOf(3, 8, "deletion", 2, 0)}, []string{">Decay<", ">accuracy at the start<"}},
	} {
		in := map[string][]stages.Data{"curves": tc.curves}
		r := stagetest.Run(t, Curves, &tc.p, in)
		svg, caption := drawn(t, "curves-"+name, r)
		shows(t, name, svg, tc.want...)
		if n := len(r.Payloads["png"][0]); n > 60<<10 || len(svg) > 80<<10 {
			t.Errorf("%s: the figure has %d bytes, %d as PNG", name, len(svg), n)
		}
		if strings.Contains(caption, "\n") {
			t.Errorf("%s: the caption is %q", name, caption)
		}
	}
}

// TestCurvesOfManyLines checks that of 20 lines the three best and worst are named, in the right order for
// both kinds of areas, and that all others are grey.
func TestCurvesOfManyLines(t *testing.T) {
	for _, order := range []string{"morf", "insertion"} {
		var curves []stages.Data
		for i := range 20 { // the later, the faster the response changes: the better
			name := fmt.Sprintf("a-method-with-a-rather-long-name-%02d", i)
			curves = append(curves, curvesOf(10, 16, order, 1+float64(i)/4, 0.02, "method", name))
		}
		p := &CurvesParams{Line: "method", Response: "probability", Band: "interval", Columns: 3}
		r := stagetest.Run(t, Curves, p, map[string][]stages.Data{"curves": curves})
		svg, caption := drawn(t, "curves-many-"+order, r)
		for i := range 20 {
			name := fmt.Sprintf(">a-method-with-a-rather-long-name-%02d<", i)
			if got, want := strings.Contains(svg, name), i < 3 || i > 16; got != want {
				t.Errorf("%s: %s is shown: %t, want %t", order, name, got, want)
			}
		}
		shows(t, "the caption", caption, "colours for the best 3 and the worst 3 lines")
		if n := len(decodeTable(t, r, "points").Rows); n != 20*17 {
			t.Errorf("%s: %d points, want those of all lines", order, n)
		}
		panel := make([]*plotLine, 2)
		for k, i := range []int{0, 19} {
			s, err := readLine(t.Context(), curves[i], "probability")
			if err != nil {
				t.Fatal(err)
			}
			s.summarise(1)
			s.cost = s.area()
			panel[k] = s
		}
		names := lineNames([][]*plotLine{panel}, nil, "method")
		if best := extremes([][]*plotLine{panel}, names, "method")[0]; best != names[1] {
			t.Errorf("%s: the best is %s", order, best)
		}
	}
}

// TestCurvesScores checks that of nine lines those named are the best and the worst by score, whichever of
// its ends is good, and not by area; and that a line without a score is neither.
func TestCurvesScores(t *testing.T) {
	line := func(i int) string { return fmt.Sprintf("line-%d", i) }
	var curves []stages.Data
	for i := range 9 {
		curves = append(curves, curvesOf(4, 8, "morf", 1+float64(i)/4, 0, "method", line(i)))
	}
	// By score: 4, 0, 8, 2, 6, 1, 5, 3, and 7 has none.
	place := []float64{1, 5, 3, 7, 0, 6, 4, nan, 2}
	for _, direction := range []stages.Direction{stages.Lower, stages.Higher, stages.None} {
		var scores []stages.Data
		for i, x := range place {
			if direction == stages.Higher {
				x = -x
			}
			items := stagetest.Items(stages.Measure{Direction: direction}.Facts(nil), stages.Scalar(x-1),
				stages.Scalar(nan), stages.Scalar(x+1))
			scores = append(scores, stagetest.At(items, "method", line(i)))
		}
		in := map[string][]stages.Data{"curves": curves, "scores": scores}
		p := &CurvesParams{Line: "method", Response: "probability", Band: "none", Columns: 1}
		if direction == stages.None {
			refuses(t, Curves, p, in, "its scores have no better end")
			continue
		}
		svg, caption := drawn(t, "curves-scores", stagetest.Run(t, Curves, p, in))
		shows(t, "the caption", caption, "the best 3 and the worst 3 lines by score")
		for i, x := range place {
			if got, want := strings.Contains(svg, ">"+line(i)+"<"), x < 3 || x > 4; got != want {
				t.Errorf("%s: %s is named: %t, want %t", direction, line(i), got, want)
			}
		}
	}
}

// twoLines returns two lines over three images, one of them undefined in the third.
func twoLines() []stages.Data {
	facts := stages.Facts{"responses": "probability,logit,correct", "order": "deletion"}
	line := func(id string, y ...[]float64) stages.Data {
		var payloads [][]byte
		for _, v := range y {
			payloads = append(payloads, stages.NewTensor(append(v, 0, 0, 0, 0), 3, 2).Encode())
		}
		return stagetest.At(stagetest.Items(facts, payloads...), "method", id)
	}
	return []stages.Data{
		line("a", []float64{1, 0.5}, []float64{0.6, 0.1}, []float64{0.2, nan}),
		line("b", []float64{1, 0.7}, []float64{0.8, 0.3}, []float64{0.9, 0.9}),
	}
}

func TestCurvesPoints(t *testing.T) {
	in := map[string][]stages.Data{"curves": twoLines()}
	r := stagetest.Run(t, Curves, nil, in)
	// Two values are the ends of their own interval.
	want := "method|share|mean|low|high|n\na|0.0000|0.8|0.6|1|2\na|1.0000|0.3|0.1|0.5|2\n" +
		"b|0.0000|0.9|0.8|1|3\nb|1.0000|0.6333|0.3|0.9|3\n"
	if got := text(decodeTable(t, r, "points")); got != want {
		t.Errorf("got\n%s", got)
	}
	if c := r.Facts["figure"]["caption"]; !strings.Contains(c, "2 to 3 images") ||
		!strings.Contains(c, "1 curve not finite left out") ||
		!strings.Contains(c, interval.Label("images")) {
		t.Errorf("the caption is %q", c)
	}
	// Paired, over the two images that both have. Minus the image's mean over both lines: a: 0, −0.1 | −0.1,
	// −0.1. The interval is 0.05 and 0 to each side, times √2 for two lines.
	r = stagetest.Run(t, Curves, &CurvesParams{Response: "probability", Band: "paired", Columns: 1}, in)
	want = "method|share|mean|low|high|n\na|0.0000|0.8|0.7293|0.8707|2\na|1.0000|0.3|0.3|0.3|2\n" +
		"b|0.0000|0.9|0.8293|0.9707|2\nb|1.0000|0.5|0.5|0.5|2\n"
	if got := text(decodeTable(t, r, "points")); got != want {
		t.Errorf("paired: got\n%s", got)
	}
}

// TestCurvesFewPoints checks that the table has the ends and what lies between at about equal distances,
// whatever the number, and that the figure has all points.
func TestCurvesFewPoints(t *testing.T) {
	in := map[string][]stages.Data{"curves": {curvesOf(3, 12, "morf", 2, 0.1)}}
	all := stagetest.Run(t, Curves, &CurvesParams{Response: "logit", Band: "none", Columns: 1}, in)
	for _, n := range []int{1, 2, 3, 5, 8, 12, 13, 50} {
		r := stagetest.Run(t, Curves,
			&CurvesParams{Response: "logit", Band: "none", Columns: 1, Points: n}, in)
		rows, every := decodeTable(t, r, "points").Rows, decodeTable(t, all, "points").Rows
		if len(rows) != min(n, len(every)) {
			t.Errorf("%d points: %d rows", n, len(rows))
		}
		k := 0
		for i, row := range rows {
			for k < len(every) && every[k].Keys[0] != row.Keys[0] {
				k++
			}
			if want := float64(i) * float64(len(every)-1) / float64(max(len(rows)-1, 1)); k == len(every) ||
				math.Abs(float64(k)-want) > 0.5 || row.Numbers[0] != every[k].Numbers[0] {
				t.Errorf("%d points: row %d of %s, want about point %.1f of %d", n, i, row.Keys[0], want,
					len(every))
			}
		}
		if !bytes.Equal(r.Payloads["figure"][0], all.Payloads["figure"][0]) {
			t.Errorf("%d points of the table change the figure", n)
		}
	}
}

func TestCurvesRefuses(t *testing.T) {
	in := map[string][]stages.Data{"curves": manyCurves()}
	refuses(t, Curves, nil, in, "line is required: name one of the axes method, model, order")
	refuses(t, Curves, &CurvesParams{Line: "metric"}, in, `the axis "metric" isn't collapsed`)
	refuses(t, Curves, &CurvesParams{Line: "method", Response: "top-1"}, in,
		`no response "top-1", only probability, logit, correct`)
	bad := []stages.Data{stagetest.Items(stages.Facts{"responses": "probability"}, stages.Scalar(1))}
	refuses(t, Curves, nil, map[string][]stages.Data{"curves": bad},
		`the curve of "item-0" has shape [1]`)
}

// TestCurvesWithoutValues checks that a figure is drawn if a line has no finite curve.
func TestCurvesWithoutValues(t *testing.T) {
	facts := stages.Facts{"responses": "probability"}
	gone := stagetest.At(stagetest.Items(facts, stages.NewTensor([]float64{nan, 1}, 1, 2).Encode()), "method",
		"a")
	for _, band := range []string{"interval", "paired", "none"} {
		r := stagetest.Run(t, Curves, &CurvesParams{Response: "probability", Band: band, Columns: 3},
			map[string][]stages.Data{"curves": {gone}})
		if got, want := text(decodeTable(t, r,
			"points")), "method|share|mean|low|high|n\na|0.0000|-|-|-|0\na|1.0000|-|-|-|0\n"; got != want {
			t.Errorf("%s: got\n%s", band, got)
		}
	}
}

// TestCurvesAtShares checks that points lie at the shares of the curves, in the table and the figure.
func TestCurvesAtShares(t *testing.T) {
	of := func(shares string) []stages.Data {
		facts := stages.Facts{"responses": "probability", "order": "morf", "shares": shares}
		payload := stages.NewTensor([]float64{1, 0.5, 0.25}, 1, 3).Encode()
		return []stages.Data{stagetest.At(stagetest.Items(facts, payload, payload), "method", "a")}
	}
	p := &CurvesParams{Response: "probability", Band: "interval", Columns: 3}
	figures := map[string]string{}
	for shares, want := range map[string][]string{
		"": {"0.0000", "0.5000", "1.0000"}, "0,0.1,0.9": {"0.0000", "0.1000", "0.9000"},
	} {
		r := stagetest.Run(t, Curves, p, map[string][]stages.Data{"curves": of(shares)})
		table, err := stages.DecodeTable(r.Payloads["points"][0])
		if err != nil {
			t.Fatal(err)
		}
		for k, row := range table.Rows {
			if got := row.Keys[len(row.Keys)-1]; got != want[k] {
				t.Errorf("shares %q: point %d lies at %s, want %s", shares, k, got, want[k])
			}
		}
		figures[shares] = string(r.Payloads["figure"][0])
	}
	if figures[""] == figures["0,0.1,0.9"] {
		t.Error("the figures are the same")
	}
	if _, err := stagetest.Try(Curves, p, map[string][]stages.Data{"curves": of("0,1")}); err == nil {
		t.Error("three points at two shares were accepted")
	}
}
