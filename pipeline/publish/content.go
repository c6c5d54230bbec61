package publish

import (
	"cmp"
	"crypto/sha256"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/runexp/runexp/pipeline/typeset"
	"github.com/runexp/runexp/stages"
)

// Definitions digests the cells of a version and their definitions, whatever their order. Versions with the
// same digest are of the same computations.
func (v *Version) Definitions() stages.Digest {
	files := map[string][]byte{}
	for name, b := range v.files {
		if hasLines(name) {
			files[name] = b
		}
	}
	return definitionsOf(files)
}

// ReadDefinitions returns the [Version.Definitions] of the review folder dir. It reads the files in cells/
// alone.
func ReadDefinitions(dir string) (stages.Digest, error) {
	files, err := readFolder(dir, hasLines)
	return definitionsOf(files), err
}

func hasLines(name string) bool {
	r := rendererOf(name)
	return r != nil && r.name == cellsName
}

func definitionsOf(files map[string][]byte) stages.Digest {
	var definitions []string
	for _, lines := range readFiles(files).lines {
		for _, l := range lines {
			definitions = append(definitions, l.Cell+" "+l.Definition+"\n")
		}
	}
	slices.Sort(definitions)
	return sha256.Sum256([]byte(strings.Join(slices.Compact(definitions), "")))
}

// Folder returns the content of a version. Files don't have all of a run: tables have no tolerances, and the
// cells that failed are named in Notes alone. Folders of older builds have no command, titles, directions
// or notes.
func (v *Version) Folder() (*Folder, error) {
	p, err := v.open()
	if err != nil {
		return nil, err
	}
	f := &Folder{Name: filepath.Base(v.dir), Order: stages.Order{}, Labels: stages.Names{},
		place: map[string]int{}}
	f.Experiment = v.files["experiment.yaml"]
	steps := f.readExperiment()
	step := func(cell string) int { return slices.Index(steps, stageOf(cell)) }
	for _, lines := range p.lines {
		f.Lines = append(f.Lines, lines...)
	}
	slices.SortStableFunc(f.Lines, func(a, b *Line) int {
		return cmp.Or(cmp.Compare(step(a.Cell), step(b.Cell)), f.compareCoords(a.Cell, b.Cell),
			cmp.Compare(a.Cell, b.Cell))
	})
	for i, l := range f.Lines {
		f.place[l.Cell] = i
	}
	for _, output := range slices.Sorted(maps.Keys(p.items)) {
		f.Items = append(f.Items, &ItemFile{Name: output + ".csv", Lines: p.items[output]})
	}
	f.Command, f.Notes, f.Passages = p.about.command, p.about.notes, p.about.passages
	for _, file := range slices.Sorted(maps.Keys(p.tables)) {
		if rows := p.tables[file]; len(rows) > 0 {
			s := sheetOf(file, rows)
			s.setHead(p.about.heads[file])
			s.Stage = p.stageOfFile(file)
			f.Sheets = append(f.Sheets, s)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(p.pictures)) {
		for _, picture := range p.pictures[file] {
			picture.Stage = p.stageOfFile(file)
			f.Pictures = append(f.Pictures, picture)
		}
	}
	return f, nil
}

// Readable reports whether the file of a picture can be decoded, and has the mark of runexp.
func (p *Picture) Readable() bool { return p.readable }

// Values returns the texts in some columns, "" for a column that the row lacks.
func (r *TableRow) Values(columns []string) []string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = r.get(c)
	}
	return out
}

// readExperiment reads the names, axes and published stages of the experiment, and returns the names of all
// its stages in their order.
func (f *Folder) readExperiment() (steps []string) {
	var e struct {
		Name, Title  string
		Axes, Stages yaml.Node
		Publish      []string
	}
	if yaml.Unmarshal(f.Experiment, &e) != nil {
		return nil
	}
	f.Name, f.Title, f.Publish = cmp.Or(e.Name, f.Name), e.Title, e.Publish
	each := func(n *yaml.Node, do func(key string, value *yaml.Node)) {
		if n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			do(n.Content[i].Value, n.Content[i+1])
		}
	}
	each(&e.Axes, func(axis string, ids *yaml.Node) {
		each(ids, func(id string, fields *yaml.Node) {
			f.Order[axis] = append(f.Order[axis], id)
			each(fields, func(field string, value *yaml.Node) {
				if field == "label" && f.Labels[axis] == nil {
					f.Labels[axis] = map[string]string{}
				}
				if field == "label" {
					f.Labels[axis][id] = value.Value
				}
			})
		})
		if ids.Kind == yaml.SequenceNode {
			for _, id := range ids.Content {
				f.Order[axis] = append(f.Order[axis], id.Value)
			}
		}
	})
	each(&e.Stages, func(name string, _ *yaml.Node) { steps = append(steps, name) })
	return steps
}

// CoordOf returns the coordinates in the name of a cell.
func CoordOf(cell string) (coord []stages.Coord) {
	_, place, _ := strings.Cut(strings.TrimSuffix(cell, "]"), "[")
	for pair := range strings.SplitSeq(place, ",") {
		if axis, id, ok := strings.Cut(pair, "="); ok {
			coord = append(coord, stages.Coord{Axis: axis, ID: id})
		}
	}
	return coord
}

// StageOf returns the stage in the name of a cell.
func StageOf(cell string) string { return stageOf(cell) }

// compareCoords orders cells of one stage by the experiment's order of ids.
func (f *Folder) compareCoords(a, b string) int {
	x, y := CoordOf(a), CoordOf(b)
	for i := range min(len(x), len(y)) {
		if c := f.Order.Compare(x[i].Axis, x[i].ID, y[i].ID); x[i].Axis == y[i].Axis && c != 0 {
			return c
		}
	}
	return 0
}

// stageOfFile returns the stage that a file is named by: the longest one that its name begins with.
func (f *publishedFolder) stageOfFile(file string) (stage string) {
	base := path.Base(file)
	for cell := range f.cells {
		name := stageOf(cell)
		if strings.HasPrefix(base, escape(name)+".") && len(name) > len(stage) {
			stage = name
		}
	}
	return stage
}

// unconfirmedColumn ends the names of columns that mark others.
const unconfirmedColumn = " not confirmed"

// sheetOf returns the sheet of rows that were read. The file doesn't say which columns are numbers: they
// are taken to be those after the last column with a text.
func sheetOf(file string, rows []*TableRow) *Sheet {
	s := &Sheet{File: file, Titles: []string{path.Base(strings.TrimSuffix(file, ".csv"))}, Rows: rows}
	columns := rows[0].columns
	first := len(columns)
	for first > 0 && !slices.ContainsFunc(rows, func(r *TableRow) bool {
		_, ok := r.number(columns[first-1])
		return !ok
	}) {
		first--
	}
	s.Keys = columns[:first]
	for _, name := range columns[first:] {
		n := stages.Column{Name: name, Digits: 4}
		if of, ok := strings.CutSuffix(name, unconfirmedColumn); ok && slices.Contains(columns, of) {
			n.Marks = of
		}
		s.Numbers = append(s.Numbers, n)
	}
	return s
}

// setHead sets the table's title, the directions of its numbers, and the meaning of its marks, to those of
// folder.jsonl.
func (s *Sheet) setHead(head folderLine) {
	if head.Title != "" {
		s.Titles[0] = head.Title
	}
	for i, n := range s.Numbers {
		if d := head.Directions[n.Name]; typeset.Arrows[d] != "" {
			s.Numbers[i].Direction = d
		}
		if n.Marks != "" {
			s.Numbers[i].Unit = head.Marks
		}
	}
}

// ScoreName returns the name of the score at a port of a stage, for people.
func ScoreName(stage, port string) string { return scoreName(stage, port) }

// ItemFiles returns the files that may have the scores of items at a port of a stage. [Version.Folder]
// lists the scores of cells with other items under the same names.
func ItemFiles(stage, port string) []string {
	names := baseNames(stage, port)
	return []string{"items/" + names[0] + ".csv", "items/" + names[1] + ".csv"}
}
