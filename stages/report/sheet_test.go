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

func TestSheetFigure(t *testing.T) {
	for _, size := range []int{32, 64, 224} {
		in := everything(t, 7, size)
		for _, overlay := range []bool{false, true} {
			name := fmt.Sprintf("sheet-%d-overlay-%v", size, overlay)
			p := sheetOf(func(p *SheetParams) { p.Overlay = overlay })
			r := stagetest.Run(t, Sheet, p, in)
			b := r.Payloads["figure"][0]
			look(t, name, b)
			t.Logf("%s: %d bytes: %s", name, len(b), r.Facts["figure"]["caption"])
			if len(b) > 200_000 {
				t.Errorf("%s: the figure has %d bytes", name, len(b))
			}
			if again := stagetest.Run(t, Sheet, p, in).Payloads["figure"][0]; !bytes.Equal(b, again) {
				t.Errorf("%s: drawn twice, the figure differs", name)
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
	in["labels"][0].Facts = stages.Facts{"labels": "cat\ndog\n"}
	in["labels"][0].Load = func(i int) ([]byte, error) {
		return stages.NewTensor([]int64{[]int64{0, 0, 2}[i]}, 1).Encode(), nil
	}
	s := read(t, sheetOf(func(*SheetParams) {}), in)
	for i, want := range []string{"cat|p = 1.000|item-0", "dog|p = 0.500|label: cat|item-1",
		"class 2|p = 0.333|item-2"} {
		if got := strings.Join(s.rows[i].notes, "|"); got != want {
			t.Errorf("below image %d stands %s, want %s", i, got, want)
		}
	}
	in["targets"] = []stages.Data{stagetest.Items(nil, slices.Repeat([][]byte{
		stages.NewTensor([]int64{1, 0}, 2).Encode()}, 3)...)}
	s = read(t, sheetOf(func(*SheetParams) {}), in)
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
	if len(s.rows) != 2 || s.boxW != 100 || s.rows[0].photo.W != 100 || s.rows[0].photo.Pix[0] != 0 ||
		s.rows[1].photo.Pix[0] != 255 {
		t.Fatalf("%d rows of %d pixels", len(s.rows), s.boxW)
	}
	if s.columns[0] != "down" || s.rows[0].tiles[0] != nil || s.rows[1].tiles[1].state != "constant" {
		t.Errorf("%s: a missing map is %v, a constant one %v", s.columns[0], s.rows[0].tiles[0],
			s.rows[1].tiles[1])
	}
	m := look(t, "sheet-axes", stagetest.Run(t, Sheet, nil, in).Payloads["figure"][0])
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
	s.setScales()
	m := look(t, "sheet-exact", s.draw())
	known := map[color.RGBA]bool{}
	for k := range mapColours {
		known[shade(k, mapColours, true)] = true
	}
	l := s.layout()
	left, top := tileGap+l.column, tileGap+headPadding+l.heads
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
		m, negative, err := tileOf(stages.NewTensor(v, side, side).Encode(), side, side)
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
		m, _, err := tileOf(stages.NewTensor(tc.v, 1, 2).Encode(), 2, 1)
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
	if s := scaleFor(false, m, &tile{values: slices.Repeat([]float64{5000}, 400)}); s.low != 103 ||
		s.high != 5000 {
		t.Errorf("two maps share the scale from %v to %v", s.low, s.high)
	}
	for _, signed := range []bool{true, false} { // it vanished in the mean of pixels
		if got := scaleFor(signed, &tile{values: []float64{0, 0}}).level(0); got != 0.5 {
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

// TestSheetSizes checks that tiles have 96 pixels or more and pixels of one size, whatever the image.
func TestSheetSizes(t *testing.T) {
	for size, want := range map[[2]int][2]int{
		{64, 64}: {128, 128}, {32, 32}: {96, 96}, {128, 128}: {128, 128}, {224, 224}: {112, 112},
		{448, 448}: {112, 112}, {190, 190}: {112, 112}, {1, 1}: {96, 96}, {3000, 20}: {200, 100},
		{20, 3000}: {100, 200}, {500, 375}: {167, 125}, {96, 120}: {96, 120}, {145, 145}: {112, 112},
	} {
		w, h := boxFor(size[0], size[1])
		if w != want[0] || h != want[1] {
			t.Errorf("%v has a tile of %d×%d, want %v", size, w, h, want)
		}
		if w, h = fit(size[0], size[1], w, h); w < 1 || h < 1 || w > want[0] || h > want[1] {
			t.Errorf("%v is drawn in %d×%d", size, w, h)
		}
	}
	for w := 1; w < 1200; w++ {
		if side, _ := boxFor(w, w); side < leastSide || side > longestSide {
			t.Errorf("an image of %d pixels has a tile of %d", w, side)
		}
	}
}

// TestSheetBudget checks that images are left out, of the best and worst those in the middle, rather than
// made smaller.
func TestSheetBudget(t *testing.T) {
	in := everything(t, 8, 64)
	p := sheetOf(func(p *SheetParams) { p.Best, p.Worst, p.Budget = 4, 4, 150 })
	s := read(t, p, in)
	all := s.ids()
	figure, shown := s.within(1000 * p.Budget)
	if len(figure) > 150_000 || shown >= 8 || shown < 2 {
		t.Errorf("%d images take %d bytes", shown, len(figure))
	}
	first, last := strings.Fields(all)[0], strings.Fields(all)[7]
	if got := strings.Fields(s.ids()); got[0] != first || got[len(got)-1] != last || s.boxW != 128 {
		t.Errorf("of %s are left %s with tiles of %d pixels", all, s.ids(), s.boxW)
	}
	caption := stagetest.Run(t, Sheet, p, in).Facts["figure"]["caption"]
	want := fmt.Sprintf("of which %d are shown: the file would exceed 150 kB", shown)
	if !strings.Contains(caption, want) {
		t.Errorf("the caption lacks %q: %s", want, caption)
	}
	p.Budget = 20
	if _, shown := read(t, p, in).within(20_000); shown != 1 {
		t.Errorf("with a budget too small for one image, %d are shown", shown)
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
		m := look(t, "sheet-"+tc.name, stagetest.Run(t, Sheet, nil, in).Payloads["figure"][0])
		if b := m.Bounds(); b.Dx() > fullWidth || b.Dx() < leastWidth || b.Dy() > 2500 {
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
	m := look(t, "sheet-marks", stagetest.Run(t, Sheet, nil, in).Payloads["figure"][0])
	l := read(t, sheetOf(func(*SheetParams) {}), in).layout()
	left, top := tileGap, tileGap+headPadding+max(l.heads, lineHeight)
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

func TestSheetRefuses(t *testing.T) {
	s := shapes(t, 2, 16)
	in := map[string][]stages.Data{"maps": mapsOf(s["masks"], 16), "images": {s["images"]}}
	refuses(t, Sheet, sheetOf(func(p *SheetParams) { p.Columns = "model" }), in,
		`the axis "model" isn't collapsed, only method`)
	in["maps"] = []stages.Data{stagetest.Items(nil, stages.Scalar(1))}
	refuses(t, Sheet, nil, in, "isn't that of a map")
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
