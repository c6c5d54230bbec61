package report

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// Grouped are the parameters of reports that split their images into groups.
type Grouped struct {
	By    []string  `yaml:"by" key:"added" doc:"columns of the input columns that split the images into groups, each with numbers of its own; several: their combinations"`
	Parts int       `yaml:"parts" key:"added" doc:"into how many groups of about equal size a column of numbers with more values is cut; 0: a group for each value" min:"0" max:"20"`
	Edges []float64 `yaml:"edges" key:"added" doc:"instead of parts: where the column of numbers is cut, an edge to the group below it"`
}

// usualParts is the default of Parts.
const usualParts = 3

// groupsDoc describes groups in the documentation of stages.
const groupsDoc = `
With by, images are split by columns of dataset/columns, and every number, interval and
test is of one group. Texts make a group each. A column of numbers with more than parts
values is cut at quantiles of the images, so that equal values stay together, or at
edges: of edges [a, b] the groups are ≤ a, (a, b] and > b. A class, such as in the columns
label, class and predicted, is never cut. Images without a value are a group, too. A warning tells of groups with too few images for any test at 0.05: fewer
than 6 of two methods, and more of several in a leaderboard.`

// columnsPort is the input that Grouped reads.
var columnsPort = stages.Port{Name: "columns", Type: stages.Columns, Optional: true, Added: true,
	Doc: "what by splits images by, of dataset/columns"}

// check rejects parameters without the columns that they need.
func (g Grouped) check(wired func(string) bool) error {
	switch {
	case len(g.By) > 0 && !wired("columns"):
		return stages.BadField("by", "by needs columns: wire those of dataset/columns")
	case len(g.By) == 0 && wired("columns"):
		return stages.BadField("by", "columns is wired: name in by those that split the images")
	case len(g.By) == 0 && len(g.Edges) > 0:
		return stages.BadField("edges", "edges cut a column of by, which is empty")
	}
	for i, name := range g.By {
		if slices.Contains(g.By[:i], name) {
			return stages.BadField("by", "duplicate column %q", name)
		}
	}
	if len(g.Edges) >= maxGroups {
		return stages.BadField("edges", "%d edges make more than %d groups", len(g.Edges), maxGroups)
	}
	for i, x := range g.Edges {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return stages.BadField("edges", "%v is no edge", x)
		}
		if i > 0 && x <= g.Edges[i-1] {
			return stages.BadField("edges", "edges increase: %v follows %v", x, g.Edges[i-1])
		}
	}
	return nil
}

// maxGroups limits the groups of a column: one with more values is hardly meant.
const maxGroups = 64

// noValue is the group of images without a value.
const noValue = "no value"

// A grouping is cells whose items are split into groups, an axis for each column.
type grouping struct {
	data  []stages.Data
	env   *stages.Env // the stage's, with the order and the names of the groups; for reading
	parts []part      // in the order of the groups; nil without groups
	sizes string      // a sentence on how many images each group has; "" without groups
	by    []string    // the axes of the groups
}

// split splits the items of a port, by the columns that agree with each cell's coordinates.
func (g Grouped) split(ctx context.Context, e *stages.Env, port string) (*grouping, error) {
	out := &grouping{data: e.Ports[port], env: e, by: g.By}
	if len(g.By) == 0 {
		return out, nil
	}
	for _, a := range axesOf(out.data) {
		if slices.Contains(g.By, a) {
			return nil, stages.BadField("by", "%q is also a collapsed axis: rename the column", a)
		}
	}
	known, err := readColumns(ctx, e.Ports["columns"], g.By)
	if err != nil {
		return nil, err
	}
	s := &splitter{Grouped: g, known: known}
	if err := s.place(ctx, out.data); err != nil {
		return nil, err
	}
	if err := s.cut(); err != nil {
		return nil, err
	}
	out.env = s.named(*e)
	parts := s.divide(out.data)
	out.parts, out.sizes = parts, s.describe(parts, stages.ItemsOf(out.data))
	var all []stages.Data
	for _, p := range parts {
		all = append(all, p.data...)
	}
	out.data = all
	return out, nil
}

// warn names the parts with too few items for any test among competitors such as "3 methods".
func (g *grouping) warn(e *stages.Env, least int, among string) {
	var few []string
	for _, p := range g.parts {
		if n, _ := p.count(); n < least {
			few = append(few, fmt.Sprintf("%s has %d", p.name, n))
		}
	}
	if len(few) == 0 {
		return
	}
	if more := len(few) - fewNamed; more > 0 {
		few = append(few[:fewNamed], fmt.Sprintf("and %d more", more))
	}
	e.Warn("with fewer than %d %s no test of %s can confirm a difference at %g: %s", least,
		stages.ItemsOf(g.data), among, level, strings.Join(few, "; "))
}

// warnInexact names the parts of whose cells too few items were measured exactly for an interval.
func (g *grouping) warnInexact(e *stages.Env, cells []*cell) {
	var few []string
	for _, p := range g.parts {
		of := slices.IndexFunc(cells, func(c *cell) bool {
			return slices.Equal(pick(c.Coord, g.by), p.ids) && !c.Sample().Enough()
		})
		if of >= 0 {
			few = append(few, p.name)
		}
	}
	if len(few) > 0 {
		e.Warn("fewer than two %s of the second phase were computed in float32 of %s, too few for an "+
			"interval: a larger pilot has more", stages.ItemsOf(g.data), strings.Join(few, "; "))
	}
}

// fewNamed is how many small groups a warning names before it counts the rest.
const fewNamed = 5

// named returns an environment that knows the groups: in their order, and named after their column.
func (s *splitter) named(e stages.Env) *stages.Env {
	order, labels := stages.Order{}, stages.Names{}
	maps.Copy(order, e.Order)
	maps.Copy(labels, e.Labels)
	for k, name := range s.By {
		order[name], labels[name] = s.groups[k], map[string]string{}
		for _, id := range s.groups[k] {
			labels[name][id] = name + " " + id
		}
	}
	e.Order, e.Labels = order, labels
	return &e
}

// A splitter finds the groups of items.
type splitter struct {
	Grouped
	known  []knownColumns
	rows   [][]stages.ItemColumns // by cell and item; nil for an item that isn't known
	groups [][]string             // by column, in their order
	group  []func(text string) string
}

// knownColumns are the columns of one cell, by the id of an item.
type knownColumns struct {
	coord []stages.Coord
	of    map[string]stages.ItemColumns
	used  map[string]bool // by the id of one that has a score
}

func readColumns(ctx context.Context, data []stages.Data, by []string) ([]knownColumns, error) {
	var out []knownColumns
	for _, d := range data {
		names := strings.Split(d.Facts["columns"], "\n")
		for _, name := range by {
			if !slices.Contains(names, name) {
				return nil, stages.BadField("by", "no column is called %q, only %s; dataset/columns takes "+
					"those of a CSV file, such as the labels.csv of a folder, with list", name,
					strings.Join(names, ", "))
			}
		}
		k := knownColumns{d.Coord, map[string]stages.ItemColumns{}, map[string]bool{}}
		for m, err := range d.All(ctx) {
			if err != nil {
				return nil, err
			}
			if k.of[m.ID], err = stages.DecodeColumns(m.Data); err != nil {
				return nil, fmt.Errorf("columns of %q: %w", m.ID, err)
			}
		}
		out = append(out, k)
	}
	return out, nil
}

// place finds the columns of every item: those of its id, or else of the item that it is derived from.
func (s *splitter) place(ctx context.Context, data []stages.Data) error {
	found := false
	for _, d := range data {
		k, err := s.columnsAt(slices.Concat(d.Coord, d.Replicate))
		if err != nil {
			return err
		}
		rows := make([]stages.ItemColumns, d.Items.Len())
		for i := range rows {
			if i%1024 == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			item, err := d.Items.At(i)
			if err != nil {
				return err
			}
			if k < 0 {
				continue
			}
			for _, id := range []string{item.ID, item.Origin} {
				if row, ok := s.known[k].of[id]; ok {
					rows[i], s.known[k].used[id], found = row, true, true
					break
				}
			}
		}
		s.rows = append(s.rows, rows)
	}
	if !found {
		return fmt.Errorf("the input columns is of other %s: none has a score", stages.ItemsOf(data))
	}
	return nil
}

// columnsAt returns which columns are those of a cell, −1 if none are. It returns an error if several with
// other values may be.
func (s *splitter) columnsAt(cell []stages.Coord) (at int, err error) {
	at = -1
	for k, known := range s.known {
		switch {
		case !agree(known.coord, cell):
		case at < 0:
			at = k
		case !maps.EqualFunc(known.of, s.known[at].of, maps.Equal):
			for i, c := range known.coord {
				if idOn(cell, c.Axis) == "" && c.ID != s.known[at].coord[i].ID {
					return -1, fmt.Errorf("the input columns differs along %q, on which scores have "+
						"no place: wire columns of one cell", c.Axis)
				}
			}
		}
	}
	return at, nil
}

// cut finds the groups of every column.
func (s *splitter) cut() error {
	numbered := 0
	for _, name := range s.By {
		var texts []string
		for _, row := range s.images() {
			if text, ok := row[name]; ok {
				texts = append(texts, text)
			}
		}
		groups, group, isNumber, err := s.groupsOf(name, texts)
		if err != nil {
			return err
		}
		if isNumber {
			numbered++
		}
		groups = slices.DeleteFunc(groups, func(g string) bool { return g == noValue })
		s.groups, s.group = append(s.groups, append(groups, noValue)), append(s.group, group)
	}
	if len(s.Edges) > 0 && numbered != 1 {
		return stages.BadField("edges", "edges cut one column of numbers, and by has %d", numbered)
	}
	return nil
}

// images returns the columns of every image that has scores, each once: the same image has scores in
// many cells.
func (s *splitter) images() (all []stages.ItemColumns) {
	for _, k := range s.known {
		for _, id := range slices.Sorted(maps.Keys(k.used)) {
			all = append(all, k.of[id])
		}
	}
	return all
}

// groupsOf returns the groups of a column with these texts, the one that a text belongs to, and whether it is
// of numbers, which edges may cut: not of classes, whose numbers have no order.
func (s *splitter) groupsOf(name string, texts []string) (groups []string, group func(string) string,
	isNumber bool, err error,
) {
	numbers := make([]float64, len(texts))
	isNumber = len(texts) > 0
	for i, text := range texts {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			isNumber = false
			break
		}
		numbers[i] = x
	}
	values := slices.Compact(slices.Sorted(slices.Values(texts)))
	if isNumber {
		slices.Sort(numbers)
		distinct := slices.Compact(slices.Clone(numbers))
		edges, classes := s.Edges, stages.HasClasses(name)
		if classes {
			edges, isNumber = nil, false
		} else if len(edges) == 0 && s.Parts > 0 && len(distinct) > s.Parts {
			edges = quantiles(numbers, s.Parts)
		}
		if len(edges) > 0 {
			groups, group = intervalsOf(edges)
			return groups, group, true, nil
		}
		values = values[:0] // 1 and 1.0 are one value
		for _, x := range distinct {
			values = append(values, numeral(x))
		}
		group = func(text string) string {
			x, _ := strconv.ParseFloat(text, 64)
			return numeral(x)
		}
	} else {
		group = func(text string) string { return text }
	}
	if len(values) > maxGroups {
		return nil, nil, false, stages.BadField("by", "the column %q has %d values, more than %d groups",
			name, len(values), maxGroups)
	}
	return values, group, isNumber, nil
}

// quantiles returns where sorted numbers are cut into parts of about equal size: each edge is the smallest
// number that is at least as large as its share of all, or one with fewer digits below the next number. Equal
// numbers aren't parted, and no part is empty.
func quantiles(sorted []float64, parts int) (edges []float64) {
	for k := 1; k < parts; k++ {
		edge := sorted[(k*len(sorted)+parts-1)/parts-1]
		next, _ := slices.BinarySearchFunc(sorted, edge, func(x, edge float64) int {
			if x > edge {
				return 1
			}
			return -1
		})
		if next == len(sorted) {
			break
		}
		if edge = shortest(edge, sorted[next]); len(edges) == 0 || edge > edges[len(edges)-1] {
			edges = append(edges, edge)
		}
	}
	return edges
}

// shortest returns the number with the fewest digits that is at least low and less than high.
func shortest(low, high float64) float64 {
	for digits := 1; digits < 17; digits++ {
		x, err := strconv.ParseFloat(strconv.FormatFloat(low, 'e', digits-1, 64), 64)
		if err == nil && x >= low && x < high {
			return x
		}
	}
	return low
}

// intervalsOf returns the groups between edges, each of which belongs to the group below it.
func intervalsOf(edges []float64) (groups []string, group func(text string) string) {
	groups = append(groups, "≤ "+numeral(edges[0]))
	for i, edge := range edges[1:] {
		groups = append(groups, fmt.Sprintf("(%s, %s]", numeral(edges[i]), numeral(edge)))
	}
	groups = append(groups, "> "+numeral(edges[len(edges)-1]))
	return slices.Clone(groups), func(text string) string {
		x, _ := strconv.ParseFloat(text, 64)
		k, _ := slices.BinarySearch(edges, x)
		return groups[k]
	}
}

// numeral writes a number with all its digits, and −0 as the number that it is equal to.
func numeral(x float64) string { return strconv.FormatFloat(x+0, 'g', -1, 64) }

// A part is the items of one group, or of one combination of groups.
type part struct {
	ids  []string // by column
	name string   // the columns with their ids
	data []stages.Data
}

// divide returns the parts that have items, in the order of the groups. Each has every cell, if need be
// without items.
func (s *splitter) divide(data []stages.Data) (parts []part) {
	at := map[string][][]int{} // by the group's number on each column, and by cell
	for c, rows := range s.rows {
		for i, row := range rows {
			key := make([]byte, len(s.By))
			for k, name := range s.By {
				id := noValue
				if text, ok := row[name]; ok {
					id = s.group[k](text)
				}
				key[k] = byte(slices.Index(s.groups[k], id))
			}
			if at[string(key)] == nil {
				at[string(key)] = make([][]int, len(data))
			}
			at[string(key)][c] = append(at[string(key)][c], i)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(at)) {
		var p part
		for k, name := range []byte(key) {
			p.ids = append(p.ids, s.groups[k][name])
		}
		p.name = s.nameOf(p.ids)
		for c, d := range data {
			items := at[key][c]
			d.Coord = append(slices.Clone(d.Coord), coordsOf(s.By, p.ids)...)
			slices.SortFunc(d.Coord, func(a, b stages.Coord) int { return cmp.Compare(a.Axis, b.Axis) })
			load := d.Load
			d.Items, d.Load = subset{d.Items, items}, func(i int) ([]byte, error) { return load(items[i]) }
			p.data = append(p.data, d)
		}
		parts = append(parts, p)
	}
	return parts
}

// A subset is some of the items of a cell.
type subset struct {
	of stages.Items
	at []int
}

func (s subset) Len() int                      { return len(s.at) }
func (s subset) At(i int) (stages.Item, error) { return s.of.At(s.at[i]) }

// count returns the numbers of items of a part in the cell with the fewest and in the one with the most.
func (p part) count() (least, most int) {
	least = math.MaxInt
	for _, d := range p.data {
		least, most = min(least, d.Items.Len()), max(most, d.Items.Len())
	}
	return least, most
}

// nameOf returns ids with the names of their columns.
func (g Grouped) nameOf(ids []string) string {
	var names []string
	for k, column := range g.By {
		names = append(names, column+" "+ids[k])
	}
	return strings.Join(names, " and ")
}

// describe says how many items each part has.
func (s *splitter) describe(parts []part, items string) string {
	var list []string
	for _, p := range parts {
		least, most := p.count()
		n := strconv.Itoa(most)
		if least < most {
			n = fmt.Sprintf("%d to %d", least, most)
		}
		list = append(list, p.name+" "+n)
	}
	return fmt.Sprintf("Groups, with the number of their %s: %s.", items, strings.Join(list, "; "))
}
