package plan

import (
	"encoding"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A resolvedParam is a parameter of a step: its text for each cell.
type resolvedParam struct {
	name  string
	texts []string // each different one
	cell  []int32  // by cell, index of its text; -1 where the stage doesn't have it
	axes  []int    // of the step: those that decide

	byText map[string]int32
	byInt  map[int64]int32 // so that ten thousand numbers needn't be written out
	last   reflect.Value   // as most of ten thousand equal the one before
	lastAt int32
}

// number returns the index of a value's text.
func (p *resolvedParam) number(w *resolvedWriter, f stages.Field, v reflect.Value) int32 {
	if k := v.Kind(); p.last.IsValid() && (k == reflect.Int || k == reflect.String) && v.Equal(p.last) {
		return p.lastAt
	}
	p.last, p.lastAt = v, p.find(w, f, v)
	return p.lastAt
}

func (p *resolvedParam) find(w *resolvedWriter, f stages.Field, v reflect.Value) int32 {
	whole := v.Kind() == reflect.Int && !f.IsText()
	if whole {
		if at, ok := p.byInt[v.Int()]; ok {
			return at
		}
	}
	text := w.text(f, v)
	at, ok := p.byText[string(text)]
	if !ok {
		at = int32(len(p.texts))
		p.texts = append(p.texts, string(text))
		p.byText[string(text)] = at
	}
	if whole {
		p.byInt[v.Int()] = at
	}
	return at
}

// params writes with and when: parameters that are the same for all cells, and for
// the others the fewest axes that decide them.
func (w *resolvedWriter) params(s *Step) {
	if len(s.Cells) == 0 {
		return
	}
	ids := cellIDs(s)
	groups := map[string][]*resolvedParam{}
	var common []string
	for _, p := range w.paramsOf(s) {
		if len(p.texts) == 1 && !slices.Contains(p.cell, -1) {
			common = append(common, "      "+yamlScalar(p.name)+": "+p.texts[0])
			continue
		}
		p.axes = decidingAxes(p.cell, ids)
		key := ""
		for _, k := range p.axes {
			key += strconv.Itoa(k) + ","
		}
		groups[key] = append(groups[key], p)
	}
	if len(common) > 0 {
		w.line("    with:")
		for _, line := range common {
			w.line(line)
		}
	}
	var keys []string
	for k := range groups {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool {
		a, b := groups[keys[i]][0].axes, groups[keys[j]][0].axes
		return len(a) < len(b) || len(a) == len(b) && slices.Compare(a, b) < 0
	})
	if len(keys) > 0 {
		w.line("    when:")
	}
	for _, k := range keys {
		w.when(s, groups[k], ids)
	}
}

// cellIDs numbers the ids of a step's cells by axis.
func cellIDs(s *Step) [][]int32 {
	ids := make([][]int32, len(s.Axes))
	for k := range ids {
		ids[k] = make([]int32, len(s.Cells))
		index := map[string]int32{}
		for i, c := range s.Cells {
			id, ok := index[c.Coord[k].ID]
			if !ok {
				id = int32(len(index))
				index[c.Coord[k].ID] = id
			}
			ids[k][i] = id
		}
	}
	return ids
}

// paramsOf collects the parameters of a step's cells, sorted by name.
func (w *resolvedWriter) paramsOf(s *Step) []*resolvedParam {
	index := map[string]*resolvedParam{}
	byStage := map[*stages.Stage][]*resolvedParam{} // in the order of fieldsOf
	var list []*resolvedParam
	for i, c := range s.Cells {
		fields := w.fieldsOf(c.Stage)
		params, ok := byStage[c.Stage]
		if !ok {
			for _, f := range fields {
				p := index[f.Name]
				if p == nil {
					p = &resolvedParam{name: f.Name, cell: slices.Repeat([]int32{-1}, len(s.Cells)), byText: map[string]int32{}, byInt: map[int64]int32{}}
					index[f.Name] = p
					list = append(list, p)
				}
				params = append(params, p)
			}
			byStage[c.Stage] = params
		}
		v := reflect.ValueOf(c.Params).Elem()
		for k, f := range fields {
			params[k].cell[i] = params[k].number(w, f, v.FieldByIndex(f.Index))
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].name < list[j].name })
	return list
}

func (w *resolvedWriter) fieldsOf(s *stages.Stage) []stages.Field {
	f, ok := w.fields[s]
	if !ok {
		f = stages.Fields(s.NewParams())
		sort.Slice(f, func(i, j int) bool { return f[i].Name < f[j].Name })
		w.fields[s] = f
	}
	return f
}

// text writes a value of a parameter.
func (w *resolvedWriter) text(f stages.Field, v reflect.Value) []byte {
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		text, err := m.MarshalText()
		if err != nil {
			text = []byte(err.Error())
		}
		return []byte(yamlScalar(string(text)))
	}
	switch v.Kind() {
	case reflect.String:
		if text := v.String(); f.File && text != "" {
			return []byte(yamlScalar(w.plan.Written(text)))
		}
		return []byte(yamlScalar(v.String()))
	case reflect.Slice:
		b := []byte{'['}
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = append(b, w.text(f, v.Index(i))...)
		}
		return append(b, ']')
	}
	return AppendValue(nil, v)
}

// maxDeciding bounds the axes among which the deciding ones are looked for.
const maxDeciding = 8

// decidingAxes returns a smallest set of axes that decides the values.
func decidingAxes(values []int32, ids [][]int32) []int {
	n := len(ids)
	all := make([]int, n)
	for k := range all {
		all[k] = k
	}
	if n > maxDeciding {
		return all
	}
	sets := make([][]int, 0, 1<<n)
	for bits := range 1 << n {
		var set []int
		for k := range n {
			if bits&(1<<k) != 0 {
				set = append(set, k)
			}
		}
		sets = append(sets, set)
	}
	sort.SliceStable(sets, func(i, j int) bool { return len(sets[i]) < len(sets[j]) })
	for _, set := range sets {
		if len(set) == n || decides(set, values, ids) {
			return set
		}
	}
	return all
}

func decides(set []int, values []int32, ids [][]int32) bool {
	const unknown = -2
	at := places(set, ids, len(values))
	if top := slices.Max(at); top < uint64(4*len(values)+1024) {
		by := slices.Repeat([]int32{unknown}, int(top)+1)
		for i, place := range at {
			if by[place] != unknown && by[place] != values[i] {
				return false
			}
			by[place] = values[i]
		}
		return true
	}
	by := make(map[uint64]int32, len(values))
	for i, place := range at {
		was, ok := by[place]
		if ok && was != values[i] {
			return false
		}
		by[place] = values[i]
	}
	return true
}

// places numbers the combinations of some axes by cell. There are at most
// maxCombinations, so numbers don't overflow.
func places(set []int, ids [][]int32, cells int) []uint64 {
	out := make([]uint64, cells)
	for _, k := range set {
		size := uint64(slices.Max(ids[k])) + 1
		for i := range out {
			out[i] = out[i]*size + uint64(ids[k][i])
		}
	}
	return out
}

// when writes the lines for parameters that the same axes decide.
func (w *resolvedWriter) when(s *Step, params []*resolvedParam, ids [][]int32) {
	axes := params[0].axes
	at, done := places(axes, ids, len(s.Cells)), map[uint64]bool{}
	type line struct {
		coord []string // ids by axis
		with  string
	}
	var lines []line
	for i, c := range s.Cells {
		if done[at[i]] {
			continue
		}
		done[at[i]] = true
		var with []string
		for _, p := range params {
			if p.cell[i] >= 0 {
				with = append(with, yamlScalar(p.name)+": "+p.texts[p.cell[i]])
			}
		}
		if len(with) == 0 {
			continue
		}
		l := line{with: strings.Join(with, ", ")}
		for _, k := range axes {
			l.coord = append(l.coord, c.Coord[k].ID)
		}
		lines = append(lines, l)
	}
	if len(axes) == 1 { // ids with the same parameters share a line
		byWith := map[string][]string{}
		for _, l := range lines {
			byWith[l.with] = append(byWith[l.with], l.coord[0])
		}
		for _, l := range lines {
			if all := byWith[l.with]; len(all) > 1 && all[0] == l.coord[0] {
				w.line("      - {if: {", yamlScalar(s.Axes[axes[0]]), ": [", yamlIDs(all), "]}, with: {", l.with, "}}")
			} else if len(all) == 1 {
				w.line("      - {if: {", yamlScalar(s.Axes[axes[0]]), ": ", yamlIDs(all), "}, with: {", l.with, "}}")
			}
		}
		return
	}
	for _, l := range lines {
		var conds []string
		for i, k := range axes {
			conds = append(conds, yamlScalar(s.Axes[k])+": "+yamlIDs(l.coord[i:i+1]))
		}
		w.line("      - {if: {", strings.Join(conds, ", "), "}, with: {", l.with, "}}")
	}
}
