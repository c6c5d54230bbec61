package report

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// columnsOf returns columns of item-0, item-1, …, of texts in the order of names; "" is no value.
func columnsOf(names []string, rows ...[]string) stages.Data {
	var payloads [][]byte
	for _, row := range rows {
		c := stages.ItemColumns{}
		for i, text := range row {
			if text != "" {
				c[names[i]] = text
			}
		}
		payloads = append(payloads, c.Encode())
	}
	return stagetest.Items(stages.Facts{"columns": strings.Join(names, "\n")}, payloads...)
}

func grouped(by ...string) Grouped { return Grouped{By: by, Parts: usualParts} }

// TestGroupsOfTable holds a table whose groups are worked out by hand. Of the sizes 1, 2, 2, 3, 4, 10 a third
// of the six ends at the second number, 2, which equals the third one; two thirds end at the fourth, 3.
func TestGroupsOfTable(t *testing.T) {
	up := stages.Measure{Direction: stages.Higher}.Facts(nil)
	in := map[string][]stages.Data{
		"values": {
			scoresOf(up, []string{"method", "ig"}, 1, 2, 3, 4, 5, 6, 7),
			scoresOf(up, []string{"method", "rise"}, 10, nan, 30, 40, 50, 60, 70),
		},
		"columns": {columnsOf([]string{"size", "domain"}, []string{"2", "b"}, []string{"10", "a"},
			[]string{"1", "b"}, []string{"3", ""}, []string{"2.0", "a"}, []string{"4", "a"},
			[]string{"", "b"})},
	}
	for name, tc := range map[string]struct {
		g    Grouped
		want string
	}{
		"thirds": {grouped("size"), "≤ 2: 1 3 5 | (2, 3]: 4 | > 3: 2 6 | no value: 7"},
		"edges": {Grouped{By: []string{"size"}, Edges: []float64{1.5, 4}},
			"≤ 1.5: 3 | (1.5, 4]: 1 4 5 6 | > 4: 2 | no value: 7"},
		"empty": {Grouped{By: []string{"size"}, Edges: []float64{-1, 100}},
			"(-1, 100]: 1 2 3 4 5 6 | no value: 7"},
		"values": {Grouped{By: []string{"size"}}, "1: 3 | 2: 1 5 | 3: 4 | 4: 6 | 10: 2 | no value: 7"},
		"texts":  {grouped("domain"), "a: 2 5 6 | b: 1 3 7 | no value: 4"},
		"both": {Grouped{By: []string{"domain", "size"}, Edges: []float64{2}},
			"a/≤ 2: 5 | a/> 2: 2 6 | b/≤ 2: 1 3 | b/no value: 7 | no value/> 2: 4"},
	} {
		p := &TableParams{Statistic: "mean", Grouped: tc.g}
		table := decodeTable(t, stagetest.Run(t, Table, p, in), "table")
		var want []string // rows by the means of the scores that a group has
		for group := range strings.SplitSeq(tc.want, " | ") {
			ids, members, _ := strings.Cut(group, ": ")
			for _, method := range []struct {
				id     string
				factor float64
			}{{"ig", 1}, {"rise", 10}} {
				sum, n, undefined := 0.0, 0, 0
				for _, m := range strings.Fields(members) {
					if method.id == "rise" && m == "2" {
						undefined++
						continue
					}
					sum += method.factor * float64(m[0]-'0')
					n++
				}
				want = append(want, fmt.Sprintf("%s %s %.6f %d %d", ids, method.id, sum/float64(n), n,
					undefined))
			}
		}
		var got []string
		by := len(tc.g.By)
		for _, r := range table.Rows {
			got = append(got, fmt.Sprintf("%s %s %.6f %v %v", strings.Join(r.Keys[:by], "/"), r.Keys[by],
				float64(r.Numbers[0]), r.Numbers[3], r.Numbers[4]))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if !table.Ranked {
			t.Errorf("%s: the order of the groups isn't kept", name)
		}
	}
}

// TestGroupsEqualParts: every number of a group is the one that the stage computes of the group's images
// alone, whatever the order of cells and columns.
func TestGroupsEqualParts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 33))
	const images = 40
	up := stages.Measure{Direction: stages.Higher}.Facts(nil)
	domains := []string{"photo", "sketch", "clip"}
	of := make([]string, images)
	var rows [][]string
	for i := range of {
		of[i] = domains[r.IntN(3)]
		rows = append(rows, []string{of[i]})
	}
	var all []stages.Data
	parts := map[string][]stages.Data{}
	for _, coord := range [][]string{{"method", "a", "metric", "x"}, {"method", "b", "metric", "x"},
		{"method", "a", "metric", "y"}, {"method", "b", "metric", "y"}} {
		values, part := make([]float64, images), map[string][]float64{}
		for i := range values {
			values[i] = r.NormFloat64()
			if r.IntN(8) == 0 {
				values[i] = nan
			}
			part[of[i]] = append(part[of[i]], values[i])
		}
		all = append(all, scoresOf(up, coord, values...))
		for _, d := range domains {
			parts[d] = append(parts[d], scoresOf(up, coord, part[d]...))
		}
	}
	columns := columnsOf([]string{"domain"}, rows...)
	in := map[string][]stages.Data{"values": all, "scores": all, "columns": {columns}}
	table := decodeTable(t, stagetest.Run(t, Table,
		&TableParams{Statistic: "mean", Grouped: grouped("domain")}, in), "table")
	board := stagetest.Run(t, Leaderboard,
		&LeaderboardParams{Rank: "method", Correction: holm, Grouped: grouped("domain")}, in)
	details := decodeTable(t, board, "details")
	for _, d := range domains {
		of := func(t stages.Table) (out stages.Table) {
			k := slices.Index(t.Keys, "domain")
			out.Keys = slices.Delete(slices.Clone(t.Keys), k, k+1)
			out.Numbers = t.Numbers
			for _, r := range t.Rows {
				if r.Keys[k] == d {
					out.Rows = append(out.Rows,
						stages.Row{Keys: slices.Delete(slices.Clone(r.Keys), k, k+1), Numbers: r.Numbers})
				}
			}
			return out
		}
		alone := map[string][]stages.Data{"values": parts[d], "scores": parts[d]}
		want := decodeTable(t, stagetest.Run(t, Table, nil, alone), "table")
		if diff := cmp.Diff(text(want), text(of(table))); diff != "" {
			t.Errorf("table of %s: %s", d, diff)
		}
		want = decodeTable(t, stagetest.Run(t, Leaderboard, nil, alone), "details")
		if diff := cmp.Diff(text(want), text(of(details))); diff != "" {
			t.Errorf("leaderboard of %s: %s", d, diff)
		}
	}
	reversed := slices.Clone(all)
	slices.Reverse(reversed)
	order := r.Perm(images)
	load, items := columns.Load, columns.Items
	columns.Items, columns.Load = subset{items, order}, func(i int) ([]byte, error) { return load(order[i]) }
	again := stagetest.Run(t, Leaderboard,
		&LeaderboardParams{Rank: "method", Correction: holm, Grouped: grouped("domain")},
		map[string][]stages.Data{"scores": reversed, "columns": {columns}})
	for port, b := range board.Payloads {
		if !bytes.Equal(b[0], again.Payloads[port][0]) {
			t.Errorf("%s depends on the order of cells or columns", port)
		}
	}
}

// TestGroupsByModel: whether an image is right depends on the model, whose cells have columns of their own.
func TestGroupsByModel(t *testing.T) {
	up := stages.Measure{Direction: stages.Higher}.Facts(nil)
	names := []string{"prediction"}
	right, wrong := []string{"right"}, []string{"wrong"}
	in := map[string][]stages.Data{
		"values": {
			scoresOf(up, []string{"model", "vgg"}, 1, 2, 4),
			scoresOf(up, []string{"model", "vit"}, 1, 2, 4),
		},
		"columns": {
			stagetest.At(columnsOf(names, right, wrong, wrong), "model", "vgg"),
			stagetest.At(columnsOf(names, right, right, right), "model", "vit"),
		},
	}
	r := stagetest.Run(t, Table, &TableParams{Statistic: "mean", Grouped: grouped("prediction")}, in)
	want := "prediction|model|mean|low|high|n|undefined\nright|vgg|1|-|-|1|0\nright|vit|2.333|1|4|3|0\n" +
		"wrong|vgg|3|2|4|2|0\nwrong|vit|-|-|-|0|0\n"
	if diff := cmp.Diff(want, text(decodeTable(t, r, "table"))); diff != "" {
		t.Error(diff)
	}
	warning := "with fewer than 6 images no test of two methods can confirm a difference at 0.05: " +
		"prediction right has 1; prediction wrong has 0"
	if diff := cmp.Diff([]string{warning}, r.Warnings); diff != "" {
		t.Error(diff)
	}
}

// TestGroupsBySeed: an image is in the group of its own seed's columns. One that lies in a group for some
// seeds alone has no score there.
func TestGroupsBySeed(t *testing.T) {
	names := []string{"prediction"}
	right, wrong := []string{"right"}, []string{"wrong"}
	of := func(run string, values ...float64) stages.Data {
		d := scoresOf(nil, nil, values...)
		d.Replicate = []stages.Coord{{Axis: "run", ID: run}}
		return d
	}
	in := map[string][]stages.Data{
		"values": {of("1", 1, 2, 4), of("2", 3, 2, 6)},
		"columns": {
			stagetest.At(columnsOf(names, right, wrong, wrong), "run", "1"),
			stagetest.At(columnsOf(names, right, right, wrong), "run", "2"),
		},
	}
	r := stagetest.Run(t, Table, &TableParams{Statistic: "mean", Grouped: grouped("prediction")}, in)
	want := "prediction|mean|low|high|sd|n|undefined|seeds\nright|2|-|-|1.414|1|1|2\n" +
		"wrong|5|-|-|1.414|1|1|2\n"
	if diff := cmp.Diff(want, text(decodeTable(t, r, "table"))); diff != "" {
		t.Error(diff)
	}
}

// TestGroupsOfOneNumber: −0 and 0 are one group.
func TestGroupsOfOneNumber(t *testing.T) {
	in := map[string][]stages.Data{"values": {scoresOf(nil, nil, 1, 2, 3)},
		"columns": {columnsOf([]string{"a"}, []string{"-0"}, []string{"0"}, []string{"1.0"})}}
	r := stagetest.Run(t, Table, &TableParams{Statistic: "mean", Grouped: grouped("a")}, in)
	want := "a|mean|low|high|n|undefined\n0|1.5|1|2|2|0\n1|3|-|-|1|0\n"
	if diff := cmp.Diff(want, text(decodeTable(t, r, "table"))); diff != "" {
		t.Error(diff)
	}
}

// TestGroupsOfClasses: a class without a name is a number, and a group of its own whatever the number of
// parts.
func TestGroupsOfClasses(t *testing.T) {
	in := map[string][]stages.Data{"values": {scoresOf(nil, nil, 1, 2, 3, 4, 5)}}
	for column, want := range map[string]string{
		"class": "2 7 10 11 207", "predicted": "2 7 10 11 207", "Label": "2 7 10 11 207",
		"size": "≤ 7 (7, 11] > 11",
	} {
		in["columns"] = []stages.Data{columnsOf([]string{column}, []string{"10"}, []string{"7"},
			[]string{"207"},
			[]string{"2"}, []string{"11"})}
		r := stagetest.Run(t, Table, &TableParams{Statistic: "mean", Grouped: grouped(column)}, in)
		var groups []string
		for _, row := range decodeTable(t, r, "table").Rows {
			groups = append(groups, row.Keys[0])
		}
		if got := strings.Join(groups, " "); got != want {
			t.Errorf("%s: %s, want %s", column, got, want)
		}
	}
}

// TestGroupsTooFew: of six images no test can confirm a difference among three methods, which two could.
func TestGroupsTooFew(t *testing.T) {
	up := stages.Measure{Direction: stages.Higher}.Facts(nil)
	rows := slices.Repeat([][]string{{"a"}}, 6)
	rows = append(rows, slices.Repeat([][]string{{"b"}}, 7)...)
	in := map[string][]stages.Data{"columns": {columnsOf([]string{"domain"}, rows...)}}
	for i, method := range []string{"ig", "rise", "lrp"} {
		scores := make([]float64, len(rows))
		for k := range scores {
			scores[k] = float64(k + i)
		}
		in["scores"] = append(in["scores"], scoresOf(up, []string{"method", method}, scores...))
		var want []string
		if i == 2 {
			want = []string{"with fewer than 7 images no test of 3 methods can confirm a difference at " +
				"0.05: domain a has 6"}
		}
		p := Leaderboard.NewParams().(*LeaderboardParams)
		p.By = []string{"domain"}
		if r := stagetest.Run(t, Leaderboard, p, in); !slices.Equal(r.Warnings, want) {
			t.Errorf("%d methods: the warnings are %q, want %q", i+1, r.Warnings, want)
		}
	}
}

func TestGroupsRefused(t *testing.T) {
	scores := []stages.Data{scoresOf(nil, []string{"method", "ig"}, 1, 2)}
	many := make([]float64, maxGroups+1)
	var texts [][]string
	for i := range many {
		texts = append(texts, []string{fmt.Sprintf("photo %d", i)})
	}
	for _, tc := range []struct {
		g       Grouped
		values  []stages.Data
		columns stages.Data
		want    string
	}{
		{grouped("size"), scores, columnsOf([]string{"domain", "site"}, []string{"a", "b"}),
			`no column is called "size", only domain, site`},
		{grouped("method"), scores, columnsOf([]string{"method"}, []string{"a"}), "also a collapsed axis"},
		{Grouped{By: []string{"domain"}, Edges: []float64{1}}, scores,
			columnsOf([]string{"domain"}, []string{"a"}), "edges cut one column of numbers, and by has 0"},
		{grouped("file"), []stages.Data{scoresOf(nil, nil, many...)}, columnsOf([]string{"file"}, texts...),
			"has 65 values, more than 64 groups"},
		{grouped("a"), scores, columnsOf([]string{"a"}), "is of other images"},
	} {
		in := map[string][]stages.Data{"values": tc.values, "columns": {tc.columns}}
		refuses(t, Table, &TableParams{Statistic: "mean", Grouped: tc.g}, in, tc.want)
	}
	at := func(list string, rows ...[]string) stages.Data {
		return stagetest.At(columnsOf([]string{"a"}, rows...), "list", list, "method", "ig")
	}
	in := map[string][]stages.Data{"values": scores,
		"columns": {at("x", []string{"1"}, []string{"2"}), at("y", []string{"1"}, []string{"3"})}}
	refuses(t, Table, &TableParams{Statistic: "mean", Grouped: grouped("a")}, in,
		`the input columns differs along "list", on which scores have no place`)
	wired := func(string) bool { return true }
	for want, g := range map[string]Grouped{
		"more than 64 groups": {By: []string{"a"}, Edges: many},
		"name in by":          {},
		"duplicate column":    grouped("a", "a"),
		"edges increase":      {By: []string{"a"}, Edges: []float64{2, 2}},
		"is no edge":          {By: []string{"a"}, Edges: []float64{nan}},
		"marks are of all":    grouped("a"),
		"by needs columns:":   grouped("a"),
	} {
		w := wired
		if strings.HasPrefix(want, "by needs") {
			w = func(string) bool { return false }
		}
		err := Table.Check(&TableParams{Statistic: "mean", Grouped: g}, func(port string) bool {
			return w(port) && (port != "marks" || strings.HasPrefix(want, "marks"))
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", g, err, want)
		}
	}
}

// TestQuantiles: edges have few digits, part no equal numbers, and leave no part empty.
func TestQuantiles(t *testing.T) {
	for _, tc := range []struct {
		sorted []float64
		parts  int
		want   []float64
	}{
		{[]float64{1, 2, 3, 4}, 2, []float64{2}},
		{[]float64{0.1234, 0.1255, 0.1288, 0.2}, 2, []float64{0.126}},
		{[]float64{0.1234, 0.1255, 0.12551, 0.2}, 2, []float64{0.1255}},
		{[]float64{0, 0, 0, 0, 0, 0, 1, 2, 3}, 3, []float64{0}},
		{[]float64{1, 2, 3, 9, 9, 9, 9, 9, 9}, 3, []float64{3}},
		{[]float64{-3, -2, -1, 0, 1, 2, 3}, 3, []float64{-1, 1}},
		{[]float64{5, 5, 5}, 3, nil},
	} {
		if got := quantiles(tc.sorted, tc.parts); !slices.Equal(got, tc.want) {
			t.Errorf("%v in %d parts: %v, want %v", tc.sorted, tc.parts, got, tc.want)
		}
	}
}

// TestSheetGroups: images are chosen in each group, in the order of the groups, whose names their rows have.
func TestSheetGroups(t *testing.T) {
	in := everything(t, 7, 8)
	in["columns"] = []stages.Data{columnsOf([]string{"domain"}, []string{"b"}, []string{"a"}, []string{"a"},
		[]string{"b"}, []string{""}, []string{"a"}, []string{"b"})}
	s := read(t, sheetOf(func(p *SheetParams) { p.By, p.Items.Count = []string{"domain"}, 2 }), in)
	var got []string
	for _, r := range s.rows {
		got = append(got, r.choice.id+" "+r.notes[len(r.notes)-1])
	}
	want := []string{"item-1 domain a", "item-2 domain a", "item-0 domain b", "item-3 domain b",
		"item-4 domain no value"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	words := "the first 2 images of domain a; the first 2 images of domain b; the first 1 image of domain " +
		"no value"
	if s.words != words {
		t.Errorf("%q, want %q", s.words, words)
	}
	s = read(t, sheetOf(func(p *SheetParams) { p.By, p.Best = []string{"domain"}, 1 }), in)
	if len(s.rows) != 3 || s.rows[0].choice.id != extreme(t, in, 1, 2, 5) {
		t.Errorf("%d rows, the first of %s, want the best of each group", len(s.rows), s.rows[0].choice.id)
	}
	refuses(t, Sheet, sheetOf(func(p *SheetParams) { p.By, p.Items.Count = []string{"domain"}, 2 }),
		with(in, "columns", stagetest.At(in["columns"][0], "model", "a"),
			stagetest.At(in["columns"][0], "model", "b")), `columns differs along "model"`)
	err := Sheet.Check(sheetOf(func(p *SheetParams) {
		p.By, p.Items = []string{"domain"}, Selection{IDs: []string{"item-1"}}
	}), func(port string) bool { return port == "columns" })
	if err == nil || !strings.Contains(err.Error(), "items lists ids") {
		t.Errorf("groups of listed ids: %v", err)
	}
}

// extreme returns the id of the best of some images by the mean of their scores.
func extreme(t *testing.T, in map[string][]stages.Data, images ...int) (id string) {
	t.Helper()
	most := math.Inf(-1)
	for _, i := range images {
		sum := 0.0
		for _, d := range in["scores"] {
			b, err := d.Load(i)
			if err != nil {
				t.Fatal(err)
			}
			x, err := stages.ScalarOf(b)
			if err != nil {
				t.Fatal(err)
			}
			sum += x
		}
		if sum > most+1e-12 {
			most, id = sum, fmt.Sprintf("item-%d", i)
		}
	}
	return id
}

// with returns inputs with other data on a port.
func with(in map[string][]stages.Data, port string, data ...stages.Data) map[string][]stages.Data {
	in = maps.Clone(in)
	in[port] = data
	return in
}
