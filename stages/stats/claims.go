package stats

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/claims"
	"github.com/runexp/runexp/stages/internal/english"
)

// told sets the outputs claims and answer to what became of claims. Without them the answer names the largest
// and the smallest number. also is a further sentence, with a space before it, or "".
func told(e *stages.Env, l claims.List, r *claims.Results, number stages.Column, w claims.Words,
	also string) error {
	o, text, err := answered(r, l, w)
	if err != nil {
		return err
	}
	e.Set("claims", o.Table(number, 0).Encode())
	e.Set("answer", []byte(text+also+"\n"))
	return nil
}

// toldBefore sets the outputs claims and answer to the results of claims; a text follows in the answer.
func toldBefore(e *stages.Env, l claims.List, r *claims.Results, number stages.Column, w claims.Words,
	text string) error {
	o, err := r.Test(l)
	if err != nil {
		return err
	}
	if first := o.Answer(w); first != "" {
		text = first + "\n\n" + text
	}
	e.Set("claims", o.Table(number, 0).Encode())
	e.Set("answer", []byte(text))
	return nil
}

// answered tests claims and reports their outcomes; without claims it names the largest and the smallest
// number.
func answered(r *claims.Results, l claims.List, w claims.Words) (*claims.Outcomes, string, error) {
	o, err := r.Test(l)
	if err != nil {
		return nil, "", err
	}
	text := o.Answer(w)
	if text == "" {
		text = extremes(r, w.Name, w.Digits)
	}
	return o, text, nil
}

// extremes names the largest and the smallest number.
func extremes(r *claims.Results, name string, digits int) string {
	low, high := -1, -1
	for i, x := range r.Values {
		if math.IsNaN(x) {
			continue
		}
		if low < 0 || x < r.Values[low] {
			low = i
		}
		if high < 0 || x > r.Values[high] {
			high = i
		}
	}
	at := func(i int) string {
		where := strings.Join(called(r, r.IDs[i]), " ")
		if where != "" {
			where = " (**" + where + "**)"
		}
		return fmt.Sprintf("%.*f%s", digits, r.Values[i], where)
	}
	switch {
	case high < 0:
		return "No " + name + " is defined."
	case len(r.Values) == 1:
		return fmt.Sprintf("%s is %s.", english.Upper(name), at(high))
	}
	return fmt.Sprintf("%s is largest with %s and smallest with %s.", english.Upper(name), at(high), at(low))
}

// called returns what ids are called.
func called(r *claims.Results, ids []string) []string {
	out := slices.Clone(ids)
	for k := range out {
		if r.Label != nil && k < len(r.Axes) {
			out[k] = r.Label(r.Axes[k], ids[k])
		}
	}
	return out
}
