package stats

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/stat"
)

// A claim says that one id of an axis has a larger number than others, in every case: a combination of the
// other axes.
type claim struct {
	id     string
	others []string
}

// ClaimsParams are the claims that an answer counts.
type ClaimsParams struct {
	Claims []string `yaml:"claims" doc:"what the answer counts, as \"mas > rise, sic\": an id that should have a larger number than others, tested once for every combination of the other keys"`
}

// Validate rejects claims that can't be read.
func (p ClaimsParams) Validate() error {
	_, err := p.parsed()
	return err
}

func (p ClaimsParams) parsed() ([]claim, error) {
	var out []claim
	for _, text := range p.Claims {
		id, rest, ok := strings.Cut(text, ">")
		c := claim{id: strings.TrimSpace(id)}
		for o := range strings.SplitSeq(rest, ",") {
			c.others = append(c.others, strings.TrimSpace(o))
		}
		if !ok || c.id == "" || slices.Contains(c.others, "") {
			return nil, stages.BadField("claims", "%q is no claim: write an id, >, and the ids that it is "+
				"compared with, as \"a > b, c\"", text)
		}
		out = append(out, c)
	}
	return out, nil
}

// resolution is the distance within which correlations, α and percentages are equal.
const resolution = 1e-9

// results are numbers by the ids of some axes.
type results struct {
	axes   []string
	ids    [][]string
	values []float64 // NaN where undefined
}

func (r *results) add(ids []string, value float64) {
	r.ids = append(r.ids, ids)
	r.values = append(r.values, value)
}

// answer counts the tests in which the claims hold. verb and more say what a larger number means, as "react"
// and "more to modified maps", and name is the number's. Without claims it names the largest and the smallest
// number.
func (r *results) answer(p ClaimsParams, verb, more, name string, digits int) (string, error) {
	claims, err := p.parsed()
	if err != nil {
		return "", err
	}
	if len(claims) == 0 {
		return r.extremes(name, digits), nil
	}
	var winners, failures, open []string
	held, tests := 0, 0
	values := stat.Tied(r.values, resolution)
	for _, c := range claims {
		axis := slices.IndexFunc(r.axes, func(axis string) bool {
			return !slices.ContainsFunc(append(slices.Clip(c.others), c.id),
				func(id string) bool { return !slices.Contains(r.on(axis), id) })
		})
		if axis < 0 {
			return "", stages.BadField("claims", "no axis has all ids of the claim %q: the axes are %s",
				c.id+" > "+strings.Join(c.others, ", "), strings.Join(r.axes, ", "))
		}
		if !slices.Contains(winners, "**"+c.id+"**") {
			winners = append(winners, "**"+c.id+"**")
		}
		for i, ids := range r.ids {
			if ids[axis] != c.id {
				continue
			}
			tests++
			rest := slices.Delete(slices.Clone(ids), axis, axis+1)
			who := strings.TrimSuffix(c.id+" in "+strings.Join(rest, " "), " in ")
			beaten, undefined := "", math.IsNaN(r.values[i])
			for k, other := range r.ids {
				if !slices.Contains(c.others, other[axis]) ||
					!slices.Equal(slices.Delete(slices.Clone(other), axis, axis+1), rest) {
					continue
				}
				undefined = undefined || math.IsNaN(r.values[k])
				if beaten == "" && values[k] >= values[i] {
					beaten = fmt.Sprintf("%s (%.*f; %s %.*f)", who, digits, r.values[i], other[axis], digits,
						r.values[k])
				}
			}
			switch {
			case beaten != "":
				failures = append(failures, beaten)
			case undefined:
				open = append(open, who)
			default:
				held++
			}
		}
	}
	whose := "their"
	if len(winners) == 1 {
		verb, whose = verb+"s", "its"
	}
	text := fmt.Sprintf("%s %s %s than %s rivals in **%d of %d** tests, by %s.", list(winners), verb,
		more, whose, held, tests, name)
	if len(failures) > 0 {
		text += " Not so: " + some(failures) + "."
	}
	if len(open) > 0 {
		text += " Undefined: " + some(open) + "."
	}
	return text, nil
}

// on returns the ids on an axis.
func (r *results) on(axis string) []string {
	k := slices.Index(r.axes, axis)
	var out []string
	for _, ids := range r.ids {
		out = append(out, ids[k])
	}
	return out
}

// extremes names the largest and the smallest number.
func (r *results) extremes(name string, digits int) string {
	low, high := -1, -1
	for i, x := range r.values {
		if math.IsNaN(x) {
			continue
		}
		if low < 0 || x < r.values[low] {
			low = i
		}
		if high < 0 || x > r.values[high] {
			high = i
		}
	}
	at := func(i int) string {
		where := strings.Join(r.ids[i], " ")
		if where != "" {
			where = " (**" + where + "**)"
		}
		return fmt.Sprintf("%.*f%s", digits, r.values[i], where)
	}
	switch {
	case high < 0:
		return "No " + name + " is defined."
	case len(r.values) == 1:
		return fmt.Sprintf("%s is %s.", upper(name), at(high))
	}
	return fmt.Sprintf("%s is largest with %s and smallest with %s.", upper(name), at(high), at(low))
}

func upper(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

// mentioned is the number of tests that a sentence names before it counts the rest.
const mentioned = 5

func some(names []string) string {
	if len(names) <= mentioned {
		return strings.Join(names, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(names[:mentioned], "; "), len(names)-mentioned)
}
