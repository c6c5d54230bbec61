// Package claims counts in how many of its tests a claim of an experiment holds: grammar.go parses a claim,
// claims.go has the parameter and its check, outcome.go the tests, scores.go the tests of means over
// images; answer.go writes the outcome in words, of which no_answer.go may say first that there is
// none, and table.go as a table.
package claims

import (
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A List is the parameter that holds claims; stages embed it.
type List struct {
	Claims []string `yaml:"claims" key:"added" doc:"what the answer tests, once for every combination of the other axes: a > b, c (an id has a larger number than each of some others of its axis), a < * (a smaller one than all others), a beats b (a better one), rho > 0.8 (the stage's number and a threshold), rho = 0.75 (to these decimals); where axis=id,id takes some combinations"`
}

// field is the parameter's name.
const field = "claims"

// Validate rejects claims that can't be parsed or are repeated.
func (l List) Validate() error {
	for i, text := range l.Claims {
		switch _, err := Parse(text); {
		case err != nil:
			return &stages.FieldError{Field: field, Name: text, Err: err}
		case slices.Contains(l.Claims[:i], text):
			return &stages.FieldError{Field: field, Name: text,
				Err: stages.BadField(field, "the claim %q stands there twice", text)}
		}
	}
	return nil
}

// Known rejects claims that name unknown axes or ids. ids are all ids of each axis, and names the names of
// the stage's number, for claims with a threshold.
func (l List) Known(ids map[string][]string, names ...string) error {
	for _, text := range l.Claims {
		c, err := Parse(text)
		if err != nil {
			return err
		}
		refuse := func(format string, args ...any) error {
			err := stages.BadField(field, "the claim %q "+format, append([]any{text}, args...)...)
			return &stages.FieldError{Field: field, Name: text, Err: err, Hint: known(ids, names)}
		}
		_, numeric := c.threshold()
		switch axis := c.axis(ids); {
		case axis == "" && slices.Contains(names, c.Subject):
			if !numeric {
				return refuse("compares %s, the stage's number, with no number", c.Subject)
			}
		case axis == "" && len(ids) == 0:
			return refuse("names ids, and no axis is collapsed")
		case axis == "":
			nearest := c.nearestAxis(ids)
			lacks := slices.DeleteFunc(c.named(), func(id string) bool {
				return slices.Contains(ids[nearest], id)
			})
			if len(lacks) > len(c.Rivals) {
				return refuse("names ids that no axis has: %s", strings.Join(lacks, ", "))
			}
			return refuse("names %s, which the axis %s doesn't have", strings.Join(lacks, ", "), nearest)
		case c.Every && len(ids[axis]) < 2:
			return refuse("compares %s with all others on the axis %s, which has no other id", c.Subject,
				axis)
		}
		for _, w := range c.Where {
			if ids[w.Axis] == nil {
				return refuse("has a condition on the axis %q, which isn't collapsed", w.Axis)
			}
			for _, id := range w.IDs {
				if !slices.Contains(ids[w.Axis], id) {
					return refuse("has a condition on %q, which the axis %s doesn't have", id, w.Axis)
				}
			}
		}
	}
	return nil
}

// known lists the names that claims may use.
func known(ids map[string][]string, names []string) string {
	var all []string
	for axis, of := range ids {
		all = append(all, axis+": "+strings.Join(of, ", "))
	}
	slices.Sort(all)
	if len(names) > 0 {
		all = append(all, "numbers: "+strings.Join(names, ", "))
	}
	return "there are " + strings.Join(all, "; ")
}

// named returns the ids next to the relation.
func (c Claim) named() []string { return append([]string{c.Subject}, c.Rivals...) }

// axis returns the axis that has all ids next to the relation, the first in alphabetical order; "" for
// none.
func (c Claim) axis(ids map[string][]string) (found string) {
	for axis, of := range ids {
		lacks := func(id string) bool { return !slices.Contains(of, id) }
		if (found == "" || axis < found) && !slices.ContainsFunc(c.named(), lacks) {
			found = axis
		}
	}
	return found
}
