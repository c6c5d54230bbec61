package dataset

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// ColumnsParams are the parameters of [Columns].
type ColumnsParams struct {
	List string `yaml:"list" doc:"a CSV file with a column file, such as a folder's labels.csv; its other columns are taken" file:"read"`
}

// Columns says what is known of each image besides its pixels, for tables that split images into groups. An
// image without a line in the list, and one without a label, target or mask, lacks the columns made of it.
//
// Facts: columns (newline-separated names).
var Columns = stages.New(stages.Def[ColumnsParams]{
	Name: "dataset/columns",
	Doc: `what is known of images, to split tables into groups

Each image has a text in every column, or none. With list, the columns of a CSV file:
its column file names the images by their ids, paths relative to the folder, or by the
end of a path if no other image has it, also without extension. Empty fields and those
that pandas or R write for missing values have no value. What is wired adds

  class        the label's name, or its number
  predicted    the predicted class, from targets or a model
  prediction   right or wrong, from labels and targets
  probability  of the predicted class
  size         the object's share of the pixels that count, from masks

of which the first four read labels, targets and probability of model/predict, which a
wired model provides. Reports split by them:

  columns: {uses: dataset/columns, in: {images: photos, masks: photos.masks},
            with: {list: photos/labels.csv}}
  table:   {uses: report/table, in: {values: auc, columns: columns}, over: all,
            with: {by: [size]}}`,
	Version:  1,
	Relation: stages.Whole,
	Named:    true,
	Inputs: []stages.Port{
		{Name: "images", Type: stages.Images, Doc: "the images", Texts: true},
		{Name: "labels", Type: stages.Labels, Doc: "their classes", Optional: true},
		{Name: "masks", Type: stages.Masks, Doc: "their objects", Optional: true},
		{Name: "model", Type: stages.Model, Doc: "the classifier, if targets isn't wired", Optional: true},
		{Name: "targets", Type: stages.Targets, Doc: "predicted classes", Optional: true,
			Else: "model/predict"},
		{Name: "probability", Type: stages.Scores, Doc: "their probabilities", Optional: true,
			Else: "model/predict"},
	},
	Outputs: []stages.Port{{Name: "columns", Type: stages.Columns, Doc: "the columns of each image"}},
	Check: func(p ColumnsParams, wired func(string) bool) error {
		inputs := []string{"labels", "masks", "model", "targets", "probability"}
		if p.List == "" && !slices.ContainsFunc(inputs, wired) {
			return stages.BadField("list", "nothing is known of the images: set list, or wire labels, "+
				"masks, model or targets")
		}
		return nil
	},
	Sources: func(p ColumnsParams, _ []string) ([]stages.Source, error) {
		if p.List == "" {
			return nil, nil
		}
		return []stages.Source{{ID: "list", File: p.List}}, nil
	},
	Run: runColumns,
	Hooks: func(ColumnsParams) stages.Hooks {
		return stages.Hooks{Most: func(in map[string]stages.Amount) int { return in["images"].Items }}
	},
})

// The columns that are made of inputs.
const (
	classColumn       = "class"
	predictedColumn   = "predicted"
	predictionColumn  = "prediction"
	probabilityColumn = "probability"
	sizeColumn        = "size"
)

// A columnSet is the columns of all images.
type columnSet struct {
	items []stages.Item
	of    []stages.ItemColumns // by image
	at    map[string][]int     // the images with an id or origin
	names []string             // of columns, in their order
}

func runColumns(ctx context.Context, p ColumnsParams, e *stages.Env) error {
	for name, data := range e.Ports {
		if len(data) > 1 {
			return fmt.Errorf("%s differs along %q, and columns are of one data set: wire %[1]s of one cell",
				name, data[0].Coord[0].Axis)
		}
	}
	s := &columnSet{at: map[string][]int{}}
	images := e.Ports["images"][0].Items
	for i := range images.Len() {
		item, err := images.At(i)
		if err != nil {
			return err
		}
		s.items, s.of = append(s.items, item), append(s.of, stages.ItemColumns{})
		s.at[item.ID] = append(s.at[item.ID], i)
		if item.Origin != item.ID {
			s.at[item.Origin] = append(s.at[item.Origin], i)
		}
	}
	if err := s.wired(ctx, e); err != nil {
		return err
	}
	if p.List != "" {
		told, err := s.read(p.List, e.Wired("labels"))
		if err != nil {
			return err
		}
		if len(told) > 0 {
			e.Warn("%s", strings.Join(told, "; "))
		}
	}
	for i, item := range s.items {
		e.Emit("columns", item.ID, item.Origin, s.of[i].Encode())
	}
	e.SetFacts("columns", stages.Facts{"ext": "json", "columns": strings.Join(s.names, "\n")})
	return nil
}

// wired adds the columns that are made of inputs.
func (s *columnSet) wired(ctx context.Context, e *stages.Env) error {
	names := append(e.Ports["labels"], append(e.Ports["model"], e.Ports["targets"]...)...)
	classNames := ""
	for _, d := range names {
		if classNames == "" {
			classNames = d.Facts["labels"]
		}
	}
	labels, predicted := make([]int64, len(s.items)), make([]int64, len(s.items))
	for i := range labels {
		labels[i], predicted[i] = -1, -1
	}
	class := func(of []int64, column string) func(int, []byte) error {
		return func(i int, payload []byte) (err error) {
			if of[i], err = firstClass(payload); err == nil {
				s.of[i][column] = nameOfClass(classNames, of[i])
			}
			return err
		}
	}
	for _, made := range []struct {
		port, column string
		use          func(i int, payload []byte) error
	}{
		{"labels", classColumn, class(labels, classColumn)},
		{"targets", predictedColumn, class(predicted, predictedColumn)},
		{"probability", probabilityColumn, func(i int, payload []byte) error {
			x, err := stages.ScalarOf(payload)
			if err == nil && x == x {
				s.of[i][probabilityColumn] = numberText(x)
			}
			return err
		}},
		{"masks", sizeColumn, func(i int, payload []byte) error {
			share, ok, err := objectShare(payload)
			if ok {
				s.of[i][sizeColumn] = numberText(share)
			}
			return err
		}},
	} {
		if !e.Wired(made.port) {
			continue
		}
		s.names = append(s.names, made.column)
		if err := s.each(ctx, e.Ports[made.port][0], made.use); err != nil {
			return fmt.Errorf("%s: %w", made.port, err)
		}
	}
	if e.Wired("labels") && e.Wired("targets") {
		s.compare(labels, predicted)
	}
	return nil
}

// each calls use with the payloads of a port and the images that they are of.
func (s *columnSet) each(ctx context.Context, d stages.Data, use func(i int, payload []byte) error) error {
	for m, err := range d.All(ctx) {
		if err != nil {
			return err
		}
		at := s.at[m.ID]
		if at == nil {
			at = s.at[m.Origin]
		}
		for _, i := range at {
			if err := use(i, m.Data); err != nil {
				return fmt.Errorf("item %q: %w", m.ID, err)
			}
		}
	}
	return nil
}

// compare adds the column of whether predictions are right; −1 is an unknown class.
func (s *columnSet) compare(labels, predicted []int64) {
	s.names = append(s.names, predictionColumn)
	for i := range labels {
		switch {
		case labels[i] < 0 || predicted[i] < 0: // unlabelled
		case labels[i] == predicted[i]:
			s.of[i][predictionColumn] = "right"
		default:
			s.of[i][predictionColumn] = "wrong"
		}
	}
}

// firstClass decodes a label, or the class that a target explains.
func firstClass(payload []byte) (int64, error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return -1, err
	}
	if t.DType != stages.I64 || t.Len() < 1 || t.Len() > 3 {
		return -1, fmt.Errorf("%s of shape %v is no class", t.DType, t.Shape)
	}
	return t.Int64s()[0], nil
}

// nameOfClass returns a class's name, or its number if it has none.
func nameOfClass(names string, class int64) string {
	if list := strings.Split(names, "\n"); class >= 0 && class < int64(len(list)) && list[class] != "" {
		return list[class]
	}
	return strconv.FormatInt(class, 10)
}

// objectShare returns the object's share of the pixels of a mask that count. ok is false if none counts.
func objectShare(payload []byte) (share float64, ok bool, err error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return 0, false, err
	}
	if t.DType != stages.U8 {
		return 0, false, errors.New("a mask has bytes")
	}
	object, counted := 0, 0
	for _, v := range t.Raw {
		if v != stages.Ignored {
			counted++
			object += int(min(v, 1))
		}
	}
	if counted == 0 {
		return 0, false, nil
	}
	return float64(object) / float64(counted), true, nil
}

func numberText(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// read adds the columns of a list. classKnown leaves out its column of labels, which the port labels has.
func (s *columnSet) read(list string, classKnown bool) (told []string, err error) {
	b, err := readText(list)
	if err != nil {
		return nil, err
	}
	t, err := readColumns(list, b, classKnown)
	if err != nil {
		return nil, err
	}
	for _, name := range t.names {
		if slices.Contains(s.names, name) {
			return nil, fmt.Errorf("%s:1: the column %q is also made of what is wired: rename it in the list",
				list, name)
		}
	}
	s.names = append(s.names, t.names...)
	ids := slices.Sorted(maps.Keys(s.at))
	find := pathsOf(ids)
	lines, lost := map[int]int{}, 0
	for _, row := range t.rows {
		id, err := find.match(row.file)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", list, row.line, err)
		}
		if id == "" {
			lost++
			continue
		}
		for _, i := range s.at[id] {
			if before := lines[i]; before > 0 {
				if err := sameRow(t.names, s.of[i], row); err != nil {
					return nil, fmt.Errorf("%s:%d: %q is also on line %d: %w", list, row.line, row.file,
						before, err)
				}
				continue
			}
			lines[i] = row.line
			maps.Copy(s.of[i], row.values)
		}
	}
	switch {
	case len(lines) == 0:
		return nil, fmt.Errorf("%s: none of its %d lines is of one of the %d images: the column %q has %q, "+
			"an image is called %q", list, len(t.rows), len(s.items), t.file, t.rows[0].file, s.items[0].ID)
	case len(lines) < len(s.items):
		told = append(told, fmt.Sprintf("%d of %d images have no line in the list of columns, and no value "+
			"in its columns", len(s.items)-len(lines), len(s.items)))
	}
	if lost > 0 && len(lines) == len(s.items) {
		return told, nil // a list of more images than are drawn
	}
	if lost > 0 {
		told = append(told, fmt.Sprintf("%d of %d lines of the list of columns are of no image", lost,
			len(t.rows)))
	}
	return told, nil
}

// sameRow returns an error if another row of an image has other values.
func sameRow(names []string, of stages.ItemColumns, row columnRow) error {
	for _, name := range names {
		if of[name] != row.values[name] {
			return fmt.Errorf("its column %q is %q there and %q here", name, of[name], row.values[name])
		}
	}
	return nil
}

// A columnTable is a list of images with its columns.
type columnTable struct {
	file  string   // the name of the column of files
	names []string // of the other columns, in their order
	rows  []columnRow
}

// A columnRow is a line of a list.
type columnRow struct {
	file   string
	values stages.ItemColumns
	line   int
}

// readColumns reads a list with the names of its columns on the first line. Columns without a name, such as
// the index that pandas writes, are left out, as is the one of labels with noLabel.
func readColumns(file string, b []byte, noLabel bool) (t columnTable, err error) {
	r := csv.NewReader(bytes.NewReader(b))
	first, _, _ := strings.Cut(string(b), "\n")
	r.Comma = separatorOf(first)
	r.FieldsPerRecord = -1
	r.TrimLeadingSpace = true
	head, err := r.Read()
	if err != nil {
		return t, badCSV(file, err)
	}
	at, taken, err := t.readHead(file, head, noLabel)
	if err != nil {
		return t, err
	}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return t, badCSV(file, err)
		}
		line, _ := r.FieldPos(0)
		if len(record) != len(head) {
			return t, fmt.Errorf("%s:%d: %d fields, the first line has %d", file, line, len(record),
				len(head))
		}
		row := columnRow{strings.TrimSpace(record[at]), stages.ItemColumns{}, line}
		if row.file == "" {
			return t, fmt.Errorf("%s:%d: missing file", file, line)
		}
		for i, name := range taken {
			text := strings.TrimSpace(record[i])
			if strings.ContainsAny(text, "\n\r") {
				return t, fmt.Errorf("%s:%d: line break inside a field", file, line)
			}
			if text != "" && !slices.Contains(absentLabels, text) {
				row.values[name] = text
			}
		}
		t.rows = append(t.rows, row)
	}
	if len(t.rows) == 0 {
		return t, fmt.Errorf("%q lists no files", file)
	}
	return t, nil
}

// readHead reads the names of a list's columns. It returns the column of files, and those that are taken with
// their names.
func (t *columnTable) readHead(file string, head []string, noLabel bool) (at int, taken map[int]string,
	err error) {
	at, _ = columnOf(head, fileColumns)
	if at < 0 {
		return 0, nil, fmt.Errorf("%s:1: no column %q among %q: the first line must name the columns", file,
			fileColumns[0], head)
	}
	label := -1
	if noLabel {
		label, _ = columnOf(head, labelColumns)
	}
	taken = map[int]string{}
	for i, name := range head {
		name = strings.TrimSpace(name)
		switch {
		case i == at:
			t.file = name
		case i == label || name == "":
		case slices.Contains(t.names, name):
			return 0, nil, fmt.Errorf("%s:1: duplicate column %q", file, name)
		case strings.ContainsAny(name, "\n\r"):
			return 0, nil, fmt.Errorf("%s:1: line break in the name of a column", file)
		default:
			t.names, taken[i] = append(t.names, name), name
		}
	}
	if len(t.names) == 0 {
		return 0, nil, fmt.Errorf("%s:1: no column besides files and labels among %q", file, head)
	}
	return at, taken, nil
}

// paths finds the ids of images by their ends.
type paths struct {
	ids    map[string]bool
	byName map[string][]string // ids by the last part, without extension
}

func pathsOf(ids []string) paths {
	p := paths{map[string]bool{}, map[string][]string{}}
	for _, id := range ids {
		p.ids[id] = true
		p.byName[stem(id)] = append(p.byName[stem(id)], id)
	}
	return p
}

// stem returns the last part of a path, without its extension.
func stem(file string) string {
	base := path.Base(file)
	return strings.TrimSuffix(base, path.Ext(base))
}

// match returns the id that a listed path means: the same, or one of which it is the end or which is its
// end, with or without extension. It returns "" for none, and an error for several.
func (p paths) match(file string) (string, error) {
	file = path.Clean(strings.ReplaceAll(file, `\`, "/"))
	if p.ids[file] {
		return file, nil
	}
	end := func(a, b string) bool { return a == b || strings.HasSuffix(a, "/"+b) }
	var found []string
	for _, key := range []string{stem(file), path.Base(file)} { // a name without extension may have a dot
		for _, id := range p.byName[key] {
			bare := strings.TrimSuffix(id, path.Ext(id))
			same := end(id, file) || end(file, id) || path.Base(file) == key && end(bare, file)
			if same && !slices.Contains(found, id) {
				found = append(found, id)
			}
		}
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("the file %q may be %q or %q", file, found[0], found[1])
}
