package report

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/chart"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/stagetest"
)

// sheetOf runs the stage with defaults that a test changes.
func sheetOf(change func(p *SheetParams)) *SheetParams {
	p := Sheet.NewParams().(*SheetParams)
	change(p)
	return p
}

// everything returns all inputs of a sheet of five methods.
func everything(t testing.TB, n, size int) map[string][]stages.Data {
	s := shapes(t, n, size)
	var targets, probability, scores [][]byte
	for i := range n {
		targets = append(targets, stages.NewTensor([]int64{int64(i % 12)}, 1).Encode())
		probability = append(probability, stages.Scalar(1/float64(i+1)))
		scores = append(scores, stages.Scalar(float64(i*5%n)/float64(n)))
	}
	in := map[string][]stages.Data{"maps": mapsOf(s["masks"], size), "images": {s["images"]},
		"labels": {s["labels"]}, "masks": {s["masks"]},
		"targets":     {stagetest.Items(nil, targets...)},
		"probability": {stagetest.Items(nil, probability...)},
	}
	for k, d := range in["maps"] {
		in["scores"] = append(in["scores"], stages.Data{Coord: d.Coord,
			Facts: stages.Measure{Direction: stages.Higher}.Facts(nil),
			Items: d.Items, Load: func(i int) ([]byte, error) { return scores[(i+k)%n], nil }})
	}
	return in
}

// TestSheetFigure checks that the PDF has every map and image in its own pixels, that the PNG keeps to the
// budget, and that files are the same twice.
func TestSheetFigure(t *testing.T) {
	for _, size := range []int{8, 64, 224} {
		in := everything(t, 7, size)
		for _, overlay := range []bool{false, true} {
			name := fmt.Sprintf("sheet-%d-overlay-%v", size, overlay)
			p := sheetOf(func(p *SheetParams) { p.Overlay = overlay })
			r := stagetest.Run(t, Sheet, p, in)
			lookAt(t, name, r)
			t.Logf("%s: %d bytes of SVG, %d of PNG, %d of PDF: %s", name, len(r.Payloads["figure"][0]),
				len(r.Payloads["png"][0]), len(r.Payloads["pdf"][0]), r.Facts["png"]["caption"])
			if n := len(r.Payloads["png"][0]); n > 200_000 &&
				!strings.Contains(r.Facts["png"]["caption"],
					"The PNG with 72 dots per inch exceeds 200 kB.") {
				t.Errorf("%s: the PNG has %d bytes", name, n)
			}
			// Six images, four maps of each, as zero is constant, and the outlines of the six objects.
			sizes, own := imageSizes(r.Payloads["pdf"][0]), fmt.Sprintf("%d×%d", size, size)
			want := 6 + 6*4
			if overlay {
				want += 6
			}
			if sizes[own] != want || sizes["128×128"] != 6 {
				t.Errorf("%s: the PDF has images %v, want %d of %s", name, sizes, want, own)
			}
			again := stagetest.Run(t, Sheet, p, in)
			for port := range r.Payloads {
				if !bytes.Equal(r.Payloads[port][0], again.Payloads[port][0]) {
					t.Errorf("%s: drawn twice, the %s differs", name, port)
				}
			}
		}
	}
}

// read runs the half of the stage that reads images and maps.
func read(t testing.TB, p *SheetParams, in map[string][]stages.Data) *sheet {
	t.Helper()
	e, err := stagetest.Env(&Sheet, in)
	if err != nil {
		t.Fatal(err)
	}
	e.Order = stages.Order{"method": {"zero", "saliency", "occlusion", "noise", "ig"}}
	s, err := p.sheet(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ids returns the images of a sheet.
func (s *sheet) ids() string {
	var list []string
	for _, r := range s.rows {
		list = append(list, r.choice.end+r.choice.id[len("item-"):])
	}
	return strings.Join(list, " ")
}

// TestSheetSelection checks which images are shown, and in which order.
func TestSheetSelection(t *testing.T) {
	in := everything(t, 7, 16)
	var classes, by [][]byte
	for i, class := range []int64{3, 3, 3, 1, 1, 0, 3} {
		classes = append(classes, stages.NewTensor([]int64{class}, 1).Encode())
		by = append(by, stages.Scalar([]float64{0.5, nan, 0.9, 0.1, 0.5, 0.7, 0.2}[i]))
	}
	in["labels"] = []stages.Data{stagetest.Items(nil, classes...)}
	measured := func(d stages.Direction, payloads ...[]byte) []stages.Data {
		return []stages.Data{stagetest.Items(stages.Measure{Direction: d}.Facts(nil), payloads...)}
	}
	for _, tc := range []struct {
		want      string
		words     string
		direction stages.Direction
		change    func(p *SheetParams)
	}{
		{"0 1 2", "the first 3 images", stages.Higher, func(p *SheetParams) { p.Items.Count = 3 }},
		{"0 3 5", "the first 3 images with at most 1 of a class", stages.Higher,
			func(p *SheetParams) { p.PerClass = 1 }},
		{"0 1 3 4", "the first 4 images with at most 2 of a class", stages.Higher,
			func(p *SheetParams) { p.PerClass, p.Items.Count = 2, 4 }},
		{"5 2", "2 chosen images", stages.Higher,
			func(p *SheetParams) { p.Items.IDs = []string{"item-5", "item-2"} }},
		// Of the two with 0.5 the first is the better; the one without a score is neither.
		{"best2 best5 best0 worst6 worst3",
			"the 3 best and the 2 worst of 6 images by score (1 without a score left out)", stages.Higher,
			func(p *SheetParams) { p.Best, p.Worst = 3, 2 }},
		{"best3 best6 worst2", "the 2 best and the 1 worst of 6 images by score (1 without a score left out)",
			stages.Lower, func(p *SheetParams) { p.Best, p.Worst = 2, 1 }},
		// There are fewer than asked for: none is shown twice.
		{"best2 best5 best0 best4 best6 best3",
			"the 6 best of 6 images by score (1 without a score left out)", stages.Higher,
			func(p *SheetParams) { p.Best, p.Worst = 20, 20 }},
	} {
		in["by"] = measured(tc.direction, by...)
		s := read(t, sheetOf(tc.change), in)
		if s.ids() != tc.want || s.words != tc.words {
			t.Errorf("%s: shows %q, %s", tc.want, s.ids(), s.words)
		}
	}
	// Of several scores of an image the mean counts.
	in["by"] = append(measured(stages.Higher, by...), measured(stages.Higher, stages.Scalar(nan),
		stages.Scalar(nan), stages.Scalar(nan), stages.Scalar(0.3), stages.Scalar(0.5), stages.Scalar(nan),
		stages.Scalar(nan))...)
	if s := read(t, sheetOf(func(p *SheetParams) { p.Best = 1 }), in); s.ids() != "best2" {
		t.Errorf("by the means of two scores it shows %q", s.ids())
	}
	in["by"] = measured(stages.None, by...)
	refuses(t, Sheet, sheetOf(func(p *SheetParams) { p.Best = 1 }), in, "nothing is best or worst")
	in["by"] = append(measured(stages.Lower, by...), measured(stages.Higher, by...)...)
	refuses(t, Sheet, sheetOf(func(p *SheetParams) { p.Best = 1 }), in,
		"some of the scores are better if higher")
	refuses(t, Sheet, sheetOf(func(p *SheetParams) { p.Items.IDs = []string{"item-9"} }), in,
		`no image has the id "item-9"`)
}

// TestSheetOrder checks that the columns are in the written order, or sorted by score with a row for each
// metric, and that a map without a score comes after those with one.
func TestSheetOrder(t *testing.T) {
	in := everything(t, 2, 16)
	columns := func(r *sheetRow) string {
		var names []string
		for _, t := range r.tiles {
			if t == nil {
				names = append(names, "-")
			} else {
				names = append(names, t.column)
			}
		}
		return strings.Join(names, " ")
	}
	s := read(t, sheetOf(func(*SheetParams) {}), in)
	if got := strings.Join(s.columns, " "); got != "zero saliency occlusion noise ig" ||
		columns(s.rows[0]) != got {
		t.Errorf("the columns are %s, the maps %s", got, columns(s.rows[0]))
	}
	in["scores"] = nil
	values := map[string][]float64{"up": {0.1, nan, 0.3, 0.2, 0.9}, "down": {3, 5, 4, 2, 1}}
	for _, metric := range []string{"down", "up"} {
		for i, d := range in["maps"] {
			in["scores"] = append(in["scores"], scoresOf(
				stages.Measure{Direction: stages.Higher}.Facts(nil),
				[]string{"method", d.Coord[0].ID, "metric", metric}, values[metric][i], values[metric][i]))
		}
	}
	in["maps"] = in["maps"][:4] // zero is missing
	s = read(t, sheetOf(func(p *SheetParams) { p.Order, p.Items.Count = "score", 1 }), in)
	// The methods are ig, noise, occlusion and saliency.
	for i, want := range []string{"noise occlusion ig saliency", "occlusion saliency ig noise"} {
		if got := columns(s.rows[i]); got != want {
			t.Errorf("%v: the maps are sorted %s, want %s", s.rows[i].ids, got, want)
		}
	}
	if got := s.rows[0].tiles[0].scores; len(got) != 1 || got[0].value != 5 || s.rows[0].ids[0] != "down" {
		t.Errorf("the first map of %v has the scores %v", s.rows[0].ids, got)
	}
	// In the written order the metrics are lines below a map.
	s = read(t, sheetOf(func(p *SheetParams) { p.Items.Count = 1 }), in)
	l := s.layout()
	s.setScales()
	var below []string
	for _, line := range l.below(s.rows[0].tiles[2]) {
		below = append(below, line.text)
	}
	if len(s.rows) != 1 || len(below) != 3 || below[0] != "down 5.000" || below[1] != "up undefined" {
		t.Errorf("%d rows; below the map stands %q", len(s.rows), below)
	}
}

// TestSheetNotes checks what stands below an image.
func TestSheetNotes(t *testing.T) {
	in := everything(t, 3, 16)
	in["labels"][0].Facts = stages.Facts{"labels": "n02121808 cat\ndog\n"}
	in["labels"][0].Load = func(i int) ([]byte, error) {
		return stages.NewTensor([]int64{[]int64{0, 0, 2}[i]}, 1).Encode(), nil
	}
	for i, want := range []string{"cat|p = 1.000", "dog|p = 0.500|label: cat", "class 2|p = 0.333"} {
		for caption, want := range map[string]string{"class": want, "both": want + fmt.Sprintf("|item-%d", i),
			"file": fmt.Sprintf("item-%d", i), "none": ""} {
			s := read(t, sheetOf(func(p *SheetParams) { p.Caption = caption }), in)
			if got := strings.Join(s.rows[i].notes, "|"); got != want {
				t.Errorf("%s: below image %d stands %s, want %s", caption, i, got, want)
			}
		}
	}
	for name, want := range map[string]string{"n02165105 tiger beetle": "tiger beetle",
		"n02165105":                    "n02165105",
		"n01440764-tench, Tinca tinca": "tench, Tinca tinca", "night": "night"} {
		if got := className(name, 0); got != want {
			t.Errorf("the class %q is called %q", name, got)
		}
	}
	in["targets"] = []stages.Data{stagetest.Items(nil, slices.Repeat([][]byte{
		stages.NewTensor([]int64{1, 0}, 2).Encode()}, 3)...)}
	s := read(t, sheetOf(func(*SheetParams) {}), in)
	if got := s.rows[0].notes[0]; got != "dog − cat" {
		t.Errorf("a difference of classes is written %q", got)
	}
	in["targets"], in["probability"] = nil, nil
	if s = read(t, sheetOf(func(*SheetParams) {}), in); s.rows[0].notes[0] != "cat" {
		t.Errorf("without targets the label is written %q", s.rows[0].notes)
	}
}

// TestSheetRowsOfOtherAxes checks that images on the axis model are paired with the maps of that model, and
// the colours of tiles.
func TestSheetRowsOfOtherAxes(t *testing.T) {
	flat := func(v float32, shape ...int) []byte {
		n := 1
		for _, d := range shape {
			n *= d
		}
		return stages.NewTensor(slices.Repeat([]float32{v}, n), shape...).Encode()
	}
	// The left half of each row is x, the right half y.
	half := func(x, y float32, shape ...int) []byte {
		m, _ := stages.DecodeTensor(flat(x, shape...))
		v := m.Float32s()
		for i := range v {
			if i%8 >= 4 {
				v[i] = y
			}
		}
		return stages.NewTensor(v, shape...).Encode()
	}
	in := map[string][]stages.Data{
		"images": {
			stagetest.At(stagetest.Items(nil, flat(0, 3, 5, 5)), "model", "black"),
			stagetest.At(stagetest.Items(nil, flat(1, 3, 10, 10)), "model", "white"),
		},
		"maps": {
			stagetest.At(stagetest.Items(nil, half(2, 4, 8, 8)), "method", "up", "model", "black"),
			stagetest.At(stagetest.Items(nil, flat(2, 9, 9)), "method", "up", "model", "white"),
			stagetest.At(stagetest.Items(nil, half(-2, 1, 3, 8, 8)), "method", "down", "model", "white"),
		},
	}
	s := read(t, sheetOf(func(*SheetParams) {}), in)
	if len(s.rows) != 2 || s.boxW != 64 || s.rows[0].photo.W != 5 || s.rows[0].photo.Pix[0] != 0 ||
		s.rows[1].photo.Pix[0] != 255 {
		t.Fatalf("%d rows of %v points", len(s.rows), s.boxW)
	}
	if s.columns[0] != "down" || s.rows[0].tiles[0] != nil || s.rows[1].tiles[1].state != "constant" {
		t.Errorf("%s: a missing map is %v, a constant one %v", s.columns[0], s.rows[0].tiles[0],
			s.rows[1].tiles[1])
	}
	r := stagetest.Run(t, Sheet, nil, in)
	if got := shownBy(t, r); !slices.Equal(got.Columns, []string{"down", "up"}) ||
		!slices.Equal(got.Items, []string{"item-0"}) || len(got.Rows) != 2 || got.Rows[1][0] != "white" {
		t.Errorf("the figure says that it shows %+v", got)
	}
	m := lookAt(t, "sheet-axes", r)
	seen := map[color.RGBA]bool{}
	for y := range m.Bounds().Dy() {
		for x := range m.Bounds().Dx() {
			seen[color.RGBAModel.Convert(m.At(x, y)).(color.RGBA)] = true
		}
	}
	for what, want := range map[string]color.RGBA{
		"the black image": {0, 0, 0, 255}, "no map": blank,
		"all of the negative side":  shade(0, mapColours, true),
		"half of the positive side": shade(3*(mapColours-1)/4, mapColours, true),
		"the high end":              shade(mapColours-1, mapColours, false),
	} {
		if !seen[want] {
			t.Errorf("%s: nothing has the colour %v", what, want)
		}
	}
}

// TestSheetMapsAreExact checks that a map is shown in the colours of its scale alone, each pixel as large as
// the others.
func TestSheetMapsAreExact(t *testing.T) {
	in := everything(t, 1, 64)
	in["masks"], in["maps"] = nil, in["maps"][1:2]
	s := read(t, sheetOf(func(*SheetParams) {}), in)
	l := s.layout()
	m := lookAt(t, "sheet-exact", stagetest.Run(t, Sheet, nil, in))
	known := map[color.RGBA]bool{}
	for k := range mapColours {
		known[shade(k, mapColours, true)] = true
	}
	left, top := int(2*(border+l.column)), int(2*(border+headPadding+l.heads))
	for y := 1; y < 127; y++ {
		for x := 1; x < 127; x++ {
			at := color.RGBAModel.Convert(m.At(left+x, top+y)).(color.RGBA)
			if !known[at] {
				t.Fatalf("pixel %d, %d has the colour %v", x, y, at)
			}
			if x%2 == 0 && x < 126 && m.At(left+x, top+y) != m.At(left+x+1, top+y) {
				t.Fatalf("pixels %d and %d of line %d belong to one of the map and differ", x, x+1, y)
			}
		}
	}
}

func TestSheetScale(t *testing.T) {
	scaleOf := func(v []float64) (*tile, *scale) {
		t.Helper()
		side := int(math.Sqrt(float64(len(v))))
		m, negative, err := tileOf(stages.NewTensor(v, side, side).Encode())
		if err != nil {
			t.Fatal(err)
		}
		return m, scaleFor(negative, m)
	}
	// One pixel in 400 is an outlier and doesn't set the scale; three in 400 do.
	for outliers, want := range []float64{1, 1, 1, 1000} {
		v := slices.Repeat([]float64{1}, 400)
		for i := range outliers {
			v[i] = -1000
		}
		v[399] = 0.5 // otherwise it would be constant
		if _, s := scaleOf(v); s.high != want || s.signed != (outliers > 0) || s.signed && s.low != -want {
			t.Errorf("with %d outliers the scale is %+v, want %g", outliers, s, want)
		}
	}
	for name, tc := range map[string]struct {
		v    []float64
		want string
	}{"zero": {[]float64{0, 0}, "constant"}, "constant": {[]float64{0.3, 0.3}, "constant"},
		"NaN": {[]float64{0, nan}, "undefined"}, "infinite": {[]float64{math.Inf(1), 0}, "undefined"}} {
		m, _, err := tileOf(stages.NewTensor(tc.v, 1, 2).Encode())
		if err != nil || m.state != tc.want {
			t.Errorf("%s: state %q, error %v", name, m.state, err)
		}
	}
	lonely := make([]float64, 400)
	lonely[17] = 3
	if _, s := scaleOf(lonely); s.low != 0 || s.high != 3 {
		t.Errorf("a map with a single value goes from %v to %v", s.low, s.high)
	}
	// Non-negative values use the whole colour map, whatever their range.
	ramp := make([]float64, 400)
	for i := range ramp {
		ramp[i] = 100 + float64(i)
	}
	ramp[0], ramp[399] = 0, 1e6 // each is one in 400
	m, s := scaleOf(ramp)
	if s.low != 101 || s.high != 497 || s.ends() != "101 … 497" {
		t.Errorf("a ramp goes from %v to %v, written %s", s.low, s.high, s.ends())
	}
	for v, want := range map[float64]float64{0: 0, 101: 0, 299: 0.5, 497: 1, 1e6: 1} {
		if got := s.level(v); !(math.Abs(got-want) <= 1e-9) {
			t.Errorf("%v is at %v of the colours, want %v", v, got, want)
		}
	}
	// Maps that share a scale have the percentiles of all their values.
	if s := scaleFor(false, m, &tile{values: slices.Repeat([]float32{5000}, 400)}); s.low != 103 ||
		s.high != 5000 {
		t.Errorf("two maps share the scale from %v to %v", s.low, s.high)
	}
	for _, signed := range []bool{true, false} { // it vanished in the mean of pixels
		if got := scaleFor(signed, &tile{values: []float32{0, 0}}).level(0); got != 0.5 {
			t.Errorf("a map that became constant is at %v", got)
		}
	}
}

func TestSheetSharedScales(t *testing.T) {
	in := everything(t, 3, 16)
	distinct := func(sharing string) int {
		s := read(t, sheetOf(func(p *SheetParams) { p.Scale = sharing }), in)
		s.setScales()
		scales := map[*scale]bool{}
		for _, r := range s.rows {
			for _, m := range r.tiles {
				if m.state == "" {
					scales[m.scale] = true
				}
			}
		}
		return len(scales)
	}
	for sharing, want := range map[string]int{"map": 12, "column": 4, "sheet": 1} { // zero is constant
		if got := distinct(sharing); got != want {
			t.Errorf("%s: %d scales, want %d", sharing, got, want)
		}
	}
}

// TestSheetSizes checks the sizes of tiles, and that as many dots per inch are tried first as give pixels
// of a map whole dots.
func TestSheetSizes(t *testing.T) {
	for size, want := range map[[2]int][2]float64{
		{64, 64}: {64, 64}, {224, 224}: {64, 64}, {1, 1}: {64, 64}, {3000, 20}: {128, 64},
		{20, 3000}: {64, 128}, {96, 120}: {64, 80},
	} {
		s := &sheet{rows: []*sheetRow{{photo: &picture.RGB{W: size[0], H: size[1]}}}}
		if s.setBox(64); s.boxW != want[0] || s.boxH != want[1] {
			t.Errorf("%v has a tile of %v×%v, want %v", size, s.boxW, s.boxH, want)
		}
		if f := s.frame(s.rows[0], 0, 0); f.W > want[0]+1e-9 || f.H > want[1]+1e-9 || f.X < -1e-9 {
			t.Errorf("%v is drawn in %v", size, f)
		}
	}
	for _, tc := range []struct {
		side, dots int
		want       []int
	}{{64, 144, []int{144, 108, 72}}, {32, 144, []int{144, 108, 72}}, {224, 144, []int{252, 144, 108, 72}},
		{28, 150, []int{158, 144, 126, 108, 95, 72}}, {672, 144, []int{144, 108, 72}}, {64, 72, []int{72}},
		{0, 100, []int{100, 72}}} {
		if got := (preview{tc.dots, 72 * float64(tc.side) / 64, 1}).choices(); !slices.Equal(got, tc.want) {
			t.Errorf("maps of %d pixels with %d dots: %v, want %v", tc.side, tc.dots, got, tc.want)
		}
	}
}

// TestSheetShowsAll checks that as many images are shown as are asked for, however large they are, and that
// the preview has fewer dots instead, which its caption tells.
func TestSheetShowsAll(t *testing.T) {
	in := everything(t, 10, 224)
	p := sheetOf(func(p *SheetParams) { p.Best, p.Worst, p.Budget = 5, 5, 150 })
	r := stagetest.Run(t, Sheet, p, in)
	got := shownBy(t, r)
	if len(got.Items) != 10 || len(got.Columns) != 5 || got.Rows != nil {
		t.Errorf("the figure says that it shows %+v", got)
	}
	if sizes := imageSizes(r.Payloads["pdf"][0]); sizes["224×224"] != 10+10*4 {
		t.Errorf("the PDF has images %v", sizes)
	}
	if c := r.Facts["png"]["caption"]; !strings.HasSuffix(c,
		" The PNG with 72 dots per inch exceeds 150 kB.") || r.Facts["png"]["unpublished"] == "" {
		t.Errorf("the PNG's facts are %v", r.Facts["png"])
	}
	if c := r.Facts["figure"]["caption"]; strings.Contains(c, "dots") || c != r.Facts["pdf"]["caption"] {
		t.Errorf("the SVG's caption is %s", c)
	}
	texts := string(r.Payloads["figure"][0])
	if strings.Count(texts, ">score ") != 10 || strings.Contains(texts, "item-") {
		t.Error("below the images their scores don't stand, or their ids do")
	}
}

// TestSheetExtremes checks that nothing breaks the figure: labels of any text, images of any shape, one
// method and forty.
func TestSheetExtremes(t *testing.T) {
	hostile := "a\x00b\u202e\xff" + strings.Repeat("very-long-", 500) + strings.Repeat("W", 1000) + "<script>"
	for _, tc := range []struct {
		name    string
		methods int
		w, h    int
	}{{"one", 1, 64, 64}, {"forty", 40, 32, 32}, {"wide", 3, 900, 6}, {"high", 3, 5, 700}, {"dot", 2, 1, 1}} {
		pixels := make([]uint8, 3*tc.w*tc.h)
		values := make([]float32, tc.w*tc.h)
		for i := range values {
			pixels[i], values[i] = uint8(i*37), float32(i%7)-2
		}
		one := func(payload []byte) stages.Data { return stagetest.Items(nil, payload) }
		in := map[string][]stages.Data{
			"images":  {one(stages.NewTensor(pixels, 3, tc.h, tc.w).Encode())},
			"targets": {one(stages.NewTensor([]int64{0}, 1).Encode())},
			"labels": {stagetest.Items(stages.Facts{"labels": hostile},
				stages.NewTensor([]int64{0}, 1).Encode())},
		}
		for k := range tc.methods {
			name := fmt.Sprintf("method-%02d", k)
			if k == 2 {
				name = hostile
			}
			in["maps"] = append(in["maps"],
				stagetest.At(one(stages.NewTensor(values, tc.h, tc.w).Encode()), "method", name))
		}
		p := sheetOf(func(p *SheetParams) { p.DPI = 72 })
		m := lookAt(t, "sheet-"+tc.name, stagetest.Run(t, Sheet, p, in))
		if b := m.Bounds(); b.Dx() > p.Width || b.Dx() < leastWidth || b.Dy() > 1500 {
			t.Errorf("%s: the figure has %v", tc.name, b.Max)
		}
	}
}

// TestSheetMarks checks that boxes, masks and the cells of a grid are outlined where they are.
func TestSheetMarks(t *testing.T) {
	plain := stages.NewTensor(slices.Repeat([]uint8{128}, 3*64*64), 3, 64, 64).Encode()
	mask := make([]uint8, 64*64)
	for i := range mask {
		if x, y := i%64, i/64; x >= 40 && x < 60 && y >= 4 && y < 24 {
			mask[i] = 1
		}
	}
	in := map[string][]stages.Data{
		"images": {stagetest.Items(nil, plain)},
		"maps":   {stagetest.Items(nil, stages.NewTensor(make([]float32, 64*64), 64, 64).Encode())},
		"masks":  {stagetest.Items(nil, stages.NewTensor(mask, 64, 64).Encode())},
		"boxes":  {stagetest.Items(nil, stages.NewTensor([]float32{8, 40, 24, 56}, 1, 4).Encode())},
		"cells":  {stagetest.Items(gridOf("64"), quarterOf(0, 64))},
	}
	m := lookAt(t, "sheet-marks", stagetest.Run(t, Sheet, nil, in))
	l := read(t, sheetOf(func(*SheetParams) {}), in).layout()
	left, top := 2*border, int(2*(border+headPadding+max(l.heads, lineHeight)))
	for _, tc := range []struct {
		what string
		x, y int
		want color.RGBA
	}{
		{"inside the mask", 100, 28, color.RGBA{128, 128, 128, 255}},
		{"the mask's edge", 80, 28, chart.Ink}, {"inside its edge", 81, 28, chart.White},
		{"before the mask", 79, 28, color.RGBA{128, 128, 128, 255}},
		{"the box's edge", 30, 80, chart.Ink}, {"inside it", 30, 81, chart.White},
		{"the explained cell", 1, 30, chart.White}, {"between cells", 64, 120, chart.Soft},
	} {
		if got := color.RGBAModel.Convert(m.At(left+tc.x, top+tc.y)); got != tc.want {
			t.Errorf("%s: the colour is %v, want %v", tc.what, got, tc.want)
		}
	}
}

// TestSheetSegments checks that the lines between segments are where these meet, and nowhere else.
func TestSheetSegments(t *testing.T) {
	grey := color.RGBA{128, 128, 128, 255}
	plain := stages.NewTensor(slices.Repeat([]uint8{128}, 3*64*64), 3, 64, 64).Encode()
	in := map[string][]stages.Data{
		"images":   {stagetest.Items(nil, plain)},
		"maps":     {stagetest.Items(nil, stages.NewTensor(make([]float32, 64*64), 64, 64).Encode())},
		"segments": {stagetest.Items(nil, stages.NewTensor([]uint32{7, 9, 2, 2}, 2, 2).Encode())},
	}
	m := lookAt(t, "sheet-segments", stagetest.Run(t, Sheet, nil, in))
	l := read(t, sheetOf(func(*SheetParams) {}), in).layout()
	left, top := 2*border, int(2*(border+headPadding+max(l.heads, lineHeight)))
	for _, tc := range []struct {
		what string
		x, y int
		want color.RGBA
	}{
		{"left of the line", 62, 20, grey}, {"the line's left", 63, 20, chart.Ink},
		{"its right", 64, 20, chart.White}, {"right of it", 65, 20, grey},
		{"above the line", 20, 62, grey}, {"the line's top", 20, 63, chart.Ink},
		{"its bottom", 20, 64, chart.White}, {"below, in one segment", 64, 100, grey},
	} {
		if got := color.RGBAModel.Convert(m.At(left+tc.x, top+tc.y)); got != tc.want {
			t.Errorf("%s: the colour is %v, want %v", tc.what, got, tc.want)
		}
	}
	in["segments"] = []stages.Data{stagetest.Items(nil, stages.NewTensor([]uint32{1}, 1).Encode())}
	refuses(t, Sheet, nil, in, `segments of "item-0": a tensor of shape [1] has no height and width`)
}

func TestSheetRefuses(t *testing.T) {
	s := shapes(t, 2, 16)
	in := map[string][]stages.Data{"maps": mapsOf(s["masks"], 16), "images": {s["images"]}}
	refuses(t, Sheet, sheetOf(func(p *SheetParams) { p.Columns = "model" }), in,
		`the axis "model" isn't collapsed, only method`)
	in["maps"] = []stages.Data{stagetest.Items(nil, stages.Scalar(1))}
	refuses(t, Sheet, nil, in, "isn't a map's")
	in["maps"] = []stages.Data{stagetest.Items(nil)}
	refuses(t, Sheet, nil, in, "none of the maps is of the first 2 images")
	wired := func(ports ...string) func(string) bool {
		return func(port string) bool { return slices.Contains(ports, port) }
	}
	for want, tc := range map[string]struct {
		p     *SheetParams
		wired func(string) bool
	}{
		"best and worst need scores": {sheetOf(func(p *SheetParams) { p.Worst = 1 }), wired()},
		"per_class needs classes":    {sheetOf(func(p *SheetParams) { p.PerClass = 1 }), wired("scores")},
		"order: score needs scores":  {sheetOf(func(p *SheetParams) { p.Order = "score" }), wired("by")},
		"wire targets too":           {sheetOf(func(*SheetParams) {}), wired("probability")},
	} {
		if err := Sheet.Check(tc.p, tc.wired); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got the error %v, want %s", err, want)
		}
	}
	for _, text := range []string{"0", "65", "[]"} {
		if err := new(Selection).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("items: %s is taken", text)
		}
	}
	for text, want := range map[string]Selection{"6": {Count: 6}, "[a, 7]": {IDs: []string{"a", "7"}},
		"photo": {IDs: []string{"photo"}}} {
		var got Selection
		if err := got.UnmarshalText([]byte(text)); err != nil || got.Count != want.Count ||
			!slices.Equal(got.IDs, want.IDs) {
			t.Errorf("items: %s is %+v, %v", text, got, err)
		}
	}
	if err := sheetOf(func(p *SheetParams) { p.PerClass, p.Best = 1, 1 }).Validate(); err == nil {
		t.Error("per_class with best is taken")
	}
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", -0.5: "−0.5", 1: "1", 0.0123: "0.012", 0.001: "0.001",
		9.96: "10", 181.4: "181", 12345: "12345", 2.14e-4: "2.1e−4", 3e7: "3.0e7"} {
		if got := short(v); got != want {
			t.Errorf("%g is written %q, want %q", v, got, want)
		}
	}
}
