package stats

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/claims"
)

// told sets the outputs claims and answer to what became of claims. Without them the answer names the largest
// and the smallest number.
func told(e *stages.Env, l claims.List, r *claims.Results, number stages.Column, w claims.Words) error {
	o, err := r.Test(l)
	if err != nil {
		return err
	}
	e.Set("claims", o.Table(number, 0).Encode())
	text := o.Answer(w)
	if text == "" {
		text = extremes(r, w.Name, w.Digits)
	}
	e.Set("answer", []byte(text+"\n"))
	return nil
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
		where := strings.Join(r.IDs[i], " ")
		if where != "" {
			where = " (**" + where + "**)"
		}
		return fmt.Sprintf("%.*f%s", digits, r.Values[i], where)
	}
	switch {
	case high < 0:
		return "No " + name + " is defined."
	case len(r.Values) == 1:
		return fmt.Sprintf("%s is %s.", upper(name), at(high))
	}
	return fmt.Sprintf("%s is largest with %s and smallest with %s.", upper(name), at(high), at(low))
}

func upper(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}
