package main

import (
	"slices"
	"strings"
	"testing"
)

// A paperList is what NAME.paper says of a paper: of each published stage the rows and columns of the table,
// or the pictures of the figure, that the experiment shows; the parameters that the paper states; and its
// claims. Each section begins with a line of its own:
//
//	table STAGE              rows and columns, as the paper has them
//	rows: a, b
//	- b: why                 the experiment lacks it
//	+ c: why                 the experiment adds it
//	axis NAME: why           an axis along which the paper has neither rows nor columns
//
//	pictures STAGE: 10       images of each sheet of a stage
//	- 4: why                 so many as the file stands; the paper's number at the paper's scale
//	+ 12: why                so many at the paper's scale too
//	ids net=vgg: x, y        which of them the result in artifacts/ shows, at a place or at all
//
//	protocol STAGE[AXIS=ID]  parameters of a stage, at some places or at all
//	steps: 224
//	- steps 64: why          as for pictures
//
//	claim STAGE: a > b; c > d
//	says: the sentence
//	number: what the paper has, and where
//	differs: why ours isn't so
//
//	other STAGE: why         the paper has no such table
type paperList struct {
	tables    []paperTable
	others    []string
	pictures  []paperValue
	protocols []paperValue
	claims    []paperClaim
}

// A paperTable is one set of ids of a table, rows or columns. what is empty for the axes alone.
type paperTable struct {
	stage, what string
	want        []string
	axes        []string // of which the paper has neither rows nor columns
}

// A paperValue is a parameter of a stage, or its number of images: the paper's value, and the experiment's as
// the file stands (small) and at the paper's scale (large), which are the paper's unless a reason is given.
type paperValue struct {
	stage               string
	at                  []string // "axis=id", sorted
	name                string
	value, small, large string
	line                int
	ids                 map[string][]string // of images, by the place of the figure
}

// A paperClaim is a sentence of the paper, the claims of a stage that test it, and the paper's own number.
type paperClaim struct {
	stage                 string
	claims                []string
	says, number, differs string
}

// readPaperList parses NAME.paper.
func readPaperList(t *testing.T, text string) (l paperList) {
	t.Helper()
	section, stage := "", ""
	var at []string
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		head, rest, colon := strings.Cut(line, ":")
		head, rest = strings.TrimSpace(head), strings.TrimSpace(rest)
		word, name, _ := strings.Cut(head, " ")
		name = strings.TrimSpace(name)
		said := colon && rest != ""
		switch {
		case word == "table" && !colon:
			section, stage = word, name
			l.tables = append(l.tables, paperTable{stage: stage})
		case word == "other" && said:
			section = ""
			l.others = append(l.others, name)
		case word == "claim" && said:
			section = word
			var claims []string
			for c := range strings.SplitSeq(rest, ";") {
				claims = append(claims, strings.TrimSpace(c))
			}
			l.claims = append(l.claims, paperClaim{stage: name, claims: claims})
		case word == "pictures" && said:
			section = word
			stage, at = placeOfCell(name)
			l.pictures = append(l.pictures, paperValue{stage: stage, at: at, name: "images", value: rest,
				small: rest, large: rest, line: i + 1, ids: map[string][]string{}})
		case word == "protocol" && !colon:
			section = word
			stage, at = placeOfCell(name)

		case section == "table" && word == "axis" && said:
			last := &l.tables[len(l.tables)-1]
			last.axes = append(last.axes, name)
		case section == "table" && said && (head == "rows" || head == "columns"):
			l.tables = append(l.tables, paperTable{stage: stage, what: head, want: splitList(rest)})
		case section == "table" && said && word == "-":
			last := &l.tables[len(l.tables)-1]
			k := slices.Index(last.want, name)
			if k < 0 {
				t.Errorf("line %d: the paper has no %s", i+1, name)
				continue
			}
			last.want = slices.Delete(last.want, k, k+1)
		case section == "table" && said && word == "+" && l.tables[len(l.tables)-1].what != "":
			last := &l.tables[len(l.tables)-1]
			last.want = append(last.want, name)

		case section == "pictures" && said && word == "ids":
			l.pictures[len(l.pictures)-1].ids[name] = splitList(rest)
		case section == "pictures" && said && (word == "-" || word == "+"):
			l.pictures[len(l.pictures)-1].deviate(word, name)
		case section == "protocol" && said && (word == "-" || word == "+"):
			param, value, _ := strings.Cut(name, " ")
			k := len(l.protocols) - 1
			if k < 0 || l.protocols[k].name != param || value == "" {
				t.Errorf("line %d: %s isn't a value of the parameter above", i+1, name)
				continue
			}
			l.protocols[k].deviate(word, value)
		case section == "protocol" && said:
			l.protocols = append(l.protocols, paperValue{stage: stage, at: at, name: head, value: rest,
				small: rest, large: rest, line: i + 1})

		case section == "claim" && said && head == "says":
			l.claims[len(l.claims)-1].says = rest
		case section == "claim" && said && head == "number":
			l.claims[len(l.claims)-1].number = rest
		case section == "claim" && said && head == "differs":
			l.claims[len(l.claims)-1].differs = rest
		default:
			t.Errorf("line %d belongs to no section: %s", i+1, line)
		}
	}
	return l
}

// splitList splits a list at commas.
func splitList(text string) []string {
	list := strings.Split(text, ",")
	for k := range list {
		list[k] = strings.TrimSpace(list[k])
	}
	return list
}

// deviate notes what the experiment has in place of the paper's value: as the file stands, or at any scale.
func (v *paperValue) deviate(sign, value string) {
	v.small = value
	if sign == "+" {
		v.large = value
	}
}

// placeOfCell parses STAGE[AXIS=ID,AXIS=ID].
func placeOfCell(name string) (stage string, at []string) {
	stage, rest, ok := strings.Cut(name, "[")
	if ok {
		at = strings.Split(strings.TrimSuffix(rest, "]"), ",")
		slices.Sort(at)
	}
	return stage, at
}
