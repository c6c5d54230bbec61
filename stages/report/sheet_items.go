package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/english"
)

// maxImages is the largest number of images in a sheet.
const maxImages = 64

// A Selection is the parameter items of [Chosen]: a number, or ids.
type Selection struct {
	Count int
	IDs   []string // nil for a number
}

// MarshalText formats s as in an experiment file: "6" or "[a, b]".
func (s Selection) MarshalText() ([]byte, error) {
	if s.IDs != nil {
		return []byte("[" + strings.Join(s.IDs, ", ") + "]"), nil
	}
	return strconv.AppendInt(nil, int64(s.Count), 10), nil
}

// UnmarshalText parses a number, an id that isn't one, or a list of ids, in which numbers are ids.
func (s *Selection) UnmarshalText(b []byte) error {
	text := string(b)
	*s = Selection{}
	if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, "]") {
		if inner = strings.TrimSuffix(inner, "]"); inner == "" {
			return fmt.Errorf("the list of ids is empty")
		}
		s.IDs = strings.Split(inner, ", ")
	} else if n, err := strconv.Atoi(text); err == nil {
		s.Count = n
	} else {
		s.IDs = []string{text}
	}
	if n := max(s.Count, len(s.IDs)); n < 1 || n > maxImages {
		return fmt.Errorf("%s: a figure shows 1 to %d", text, maxImages)
	}
	return nil
}

// Chosen are the parameters of figures that show some of the images, or texts.
type Chosen struct {
	Items    Selection `yaml:"items" doc:"what is shown: how many from the first, or a list of their ids"`
	PerClass int       `yaml:"per_class" doc:"of these at most so many of a class; 0: any number" min:"0" max:"64"`
	Best     int       `yaml:"best" doc:"instead of items: so many with the best scores, of all" min:"0" max:"32"`
	Worst    int       `yaml:"worst" doc:"instead of items: so many with the worst scores, of all" min:"0" max:"32"`
}

func chosen() Chosen { return Chosen{Items: Selection{Count: 6}} }

// Validate rejects choices that exclude each other.
func (p Chosen) Validate() error {
	switch {
	case p.PerClass > 0 && p.Best+p.Worst > 0:
		return stages.BadField("per_class", "per_class limits the first ones, not the best and the worst")
	case p.PerClass > 0 && p.Items.IDs != nil:
		return stages.BadField("per_class", "per_class limits a number, not a list of ids")
	}
	return nil
}

// check rejects parameters, and an order of maps, whose inputs aren't wired.
func (p Chosen) check(order string, wired func(string) bool) error {
	switch {
	case p.Best+p.Worst > 0 && !wired("by") && !wired("scores"):
		return stages.BadField("best", "best and worst need scores: wire by or scores")
	case p.PerClass > 0 && !wired("labels") && !wired("targets"):
		return stages.BadField("per_class", "per_class needs classes: wire labels or targets")
	case order == "score" && !wired("scores"):
		return stages.BadField("order", "order: score needs scores: wire scores")
	case wired("probability") && !wired("targets"):
		return errors.New("a probability needs its class: wire targets too")
	}
	return nil
}

// A choice is a selected image.
type choice struct {
	id    string
	end   string  // best or worst if it was selected by its score
	score float64 // the score by which it was selected
	group string  // the name of its group, "" without groups
}

// A picker chooses the images, or texts, of a page.
type picker struct {
	port, noun string // "images" and "image"
	Chosen
}

// choose returns the images to show, in order, and the words for the caption.
func (p picker) choose(ctx context.Context, e *stages.Env) (list []choice, words string, err error) {
	all, err := itemsOf(ctx, slices.DeleteFunc(slices.Clone(e.Ports[p.port]), func(d stages.Data) bool {
		explained := func(m stages.Data) bool { return agree(m.Coord, d.Coord) }
		return !slices.ContainsFunc(e.Ports["maps"], explained)
	}))
	if err != nil {
		return nil, "", err
	}
	switch {
	case p.Items.IDs != nil && p.Best+p.Worst == 0:
		for _, id := range p.Items.IDs {
			if !slices.ContainsFunc(all, func(ids []string) bool { return slices.Contains(ids, id) }) {
				return nil, "", stages.BadField("items", "no %s has the id %q", p.noun, id)
			}
			list = append(list, choice{id: id})
		}
		return list, english.Count(len(list), "chosen "+p.noun), nil
	case p.Best+p.Worst > 0:
		return p.extremes(ctx, e, all)
	}
	for _, ids := range all {
		taken, shown := map[int64]int{}, 0
		for _, id := range ids {
			if shown == p.Items.Count {
				break
			}
			if p.PerClass > 0 {
				class, ok, err := classOf(e, id, nil)
				if err != nil {
					return nil, "", err
				}
				if taken[class]++; !ok || taken[class] > p.PerClass {
					continue
				}
			}
			shown++
			if !slices.ContainsFunc(list, func(k choice) bool { return k.id == id }) {
				list = append(list, choice{id: id})
			}
		}
	}
	words = "the first " + english.Count(len(list), p.noun)
	if p.PerClass > 0 {
		words += fmt.Sprintf(" with at most %d of a class", p.PerClass)
	}
	return list, words, nil
}

// choose returns the images of a sheet, group by group.
func (p SheetParams) choose(ctx context.Context, e *stages.Env) (list []choice, words string, err error) {
	pick := picker{"images", "image", p.Chosen}
	if len(p.By) == 0 {
		return pick.choose(ctx, e)
	}
	if columns := e.Ports["columns"]; len(columns) > 1 {
		return nil, "", fmt.Errorf("columns differs along %q, and an image of a sheet has one group: wire "+
			"columns of one cell", columns[0].Coord[0].Axis)
	}
	grouped, err := p.split(ctx, e, "images")
	if err != nil {
		return nil, "", err
	}
	var of []string
	for _, part := range grouped.parts {
		some := *e
		some.Ports = maps.Clone(e.Ports)
		some.Ports["images"] = part.data
		chosen, words, err := pick.choose(ctx, &some)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", part.name, err)
		}
		for _, c := range chosen {
			c.group = part.name
			list = append(list, c)
		}
		of = append(of, fmt.Sprintf("%s of %s", words, part.name))
	}
	if len(list) > maxImages {
		return nil, "", stages.BadField("items", "%d images in %d groups: a figure shows 1 to %d", len(list),
			len(grouped.parts), maxImages)
	}
	return list, strings.Join(of, "; "), nil
}

// itemsOf returns the ids on a port, each list once: whole images and grids have different lists, cells of
// one data set the same.
func itemsOf(ctx context.Context, data []stages.Data) (all [][]string, err error) {
	for _, d := range data {
		ids := make([]string, d.Items.Len())
		for i := range ids {
			if i%1024 == 0 && ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			item, err := d.Items.At(i)
			if err != nil {
				return nil, err
			}
			ids[i] = item.ID
		}
		if !slices.ContainsFunc(all, func(o []string) bool { return slices.Equal(o, ids) }) {
			all = append(all, ids)
		}
	}
	return all, nil
}

// extremes returns the images with the best and the worst means of the scores on the port by, or scores,
// from the best to the worst. Of equal ones the first in order is the better one.
func (p picker) extremes(ctx context.Context, e *stages.Env, all [][]string) ([]choice, string, error) {
	port := "by"
	if !e.Wired(port) {
		port = "scores"
	}
	direction, err := directionOf(e, port)
	if err != nil {
		return nil, "", err
	}
	means, err := meansOn(ctx, e, port)
	if err != nil {
		return nil, "", err
	}
	var list []choice
	undefined, seen := 0, map[string]bool{}
	for _, ids := range all {
		for _, id := range ids {
			if seen[id] {
				continue
			}
			seen[id] = true
			if mean, ok := means[id]; ok {
				list = append(list, choice{id: id, score: mean})
			} else {
				undefined++
			}
		}
	}
	slices.SortStableFunc(list, func(a, b choice) int {
		if direction == stages.Lower {
			a, b = b, a
		}
		return -cmp.Compare(a.score, b.score)
	})
	scored := len(list)
	best := min(p.Best, scored)
	worst := min(p.Worst, scored-best)
	list = slices.Concat(list[:best], list[scored-worst:])
	if len(list) == 0 {
		return nil, "", fmt.Errorf("none of the %ss has a score", p.noun)
	}
	var ends []string
	for _, end := range []struct {
		name string
		of   []choice
	}{{"best", list[:best]}, {"worst", list[best:]}} {
		for i := range end.of {
			end.of[i].end = end.name
		}
		if len(end.of) > 0 {
			ends = append(ends, fmt.Sprintf("the %d %s", len(end.of), end.name))
		}
	}
	words := fmt.Sprintf("%s of %s by score", strings.Join(ends, " and "), english.Count(scored, p.noun))
	if undefined > 0 {
		words += fmt.Sprintf(" (%d without a score left out)", undefined)
	}
	return list, words, nil
}

// meansOn returns the means over cells of the defined scores on a port, by image.
func meansOn(ctx context.Context, e *stages.Env, port string) (map[string]float64, error) {
	sum, n := map[string]float64{}, map[string]int{}
	for _, d := range e.Ports[port] {
		for m, err := range d.All(ctx) {
			if err != nil {
				return nil, err
			}
			x, err := stages.ScalarOf(m.Data)
			if err != nil {
				return nil, fmt.Errorf("score of %q: %w", m.ID, err)
			}
			if !math.IsNaN(x) {
				sum[m.ID] += x
				n[m.ID]++
			}
		}
	}
	for id := range sum {
		sum[id] /= float64(n[id])
	}
	return sum, nil
}

// directionOf returns the direction of the scores on a port. It returns an error if it is unknown, or
// differs between cells.
func directionOf(e *stages.Env, port string) (stages.Direction, error) {
	direction := stages.None
	for i, d := range e.Ports[port] {
		next := stages.MeasureOf(d.Facts).Direction
		if i > 0 && next != direction {
			return "", fmt.Errorf("port %s: some of the scores are better if higher, others if not", port)
		}
		direction = next
	}
	if direction == stages.None {
		return "", fmt.Errorf("port %s: its scores have no better end, so nothing is best or worst", port)
	}
	return direction, nil
}

// classOf returns the label of an image, or else the explained class.
func classOf(e *stages.Env, id string, place []stages.Coord) (class int64, ok bool, err error) {
	for _, port := range []string{"labels", "targets"} {
		b, err := payloadAt(e.Ports[port], id, place)
		if err != nil {
			return 0, false, err
		}
		if b != nil {
			classes, err := classesOf(b)
			if err != nil {
				return 0, false, fmt.Errorf("%s of %q: %w", port, id, err)
			}
			return classes[0], true, nil
		}
	}
	return 0, false, nil
}

// classesOf decodes a class, or a class and a subtracted one, -1 for none.
func classesOf(b []byte) ([]int64, error) {
	t, err := stages.DecodeTensor(b)
	if err != nil {
		return nil, err
	}
	if t.DType != stages.I64 || t.Len() < 1 || t.Len() > 3 {
		return nil, fmt.Errorf("%s of shape %v is no class", t.DType, t.Shape)
	}
	return t.Int64s(), nil
}

// payloadAt returns the payload of an image on a port at a place: of the item with that id, or else of the
// first item derived from it; nil if there is none.
func payloadAt(data []stages.Data, id string, place []stages.Coord) ([]byte, error) {
	for k := range data {
		if !agree(place, data[k].Coord) {
			continue
		}
		b, err := payload(data[k], id)
		if err != nil || b != nil {
			return b, err
		}
	}
	return nil, nil
}

// payload returns the payload of an image on a port: of the item with that id, or else of the first derived
// from it.
func payload(d stages.Data, id string) ([]byte, error) {
	first := -1
	for i := range d.Items.Len() {
		item, err := d.Items.At(i)
		if err != nil {
			return nil, err
		}
		if item.ID == id {
			return d.Load(i)
		}
		if first < 0 && item.Origin == id {
			first = i
		}
	}
	if first < 0 {
		return nil, nil
	}
	return d.Load(first)
}
