package fuse

import (
	"fmt"
	"math"
	"strings"

	"github.com/runexp/runexp/stages/internal/english"
	"github.com/runexp/runexp/stages/internal/stat"
)

// mentioned is the number of cases that a sentence names before it counts the rest.
const mentioned = 5

// answer summarises the tables in words.
func answer(c *contest, r result) string {
	switch len(c.methods) {
	case 0:
		return "No case compares two methods: there is nothing to rank." + c.remarks() + "\n"
	case 1:
		return fmt.Sprintf("Only **%s** competes: there is nothing to rank.%s\n", c.names[0], c.remarks())
	}
	var best []string
	for _, i := range r.order {
		if r.Rank[i] == 1 {
			best = append(best, "**"+c.names[i]+"**")
		}
	}
	first := r.order[0]
	won, all := r.won(first)
	where := fmt.Sprintf("in %s, %s", c.casesText(), c.itemsText())

	var s []string
	switch {
	case len(best) == len(c.methods):
		return fmt.Sprintf("All %d methods come out equal %s.%s\n", len(best), where, c.remarks())
	case len(best) > 1:
		s = append(s, fmt.Sprintf("%s share the first place of %d: each wins %s of %.0f pairwise "+
			"comparisons (κ = %.2f) %s.", english.And(best), len(c.methods), half(won), all, r.Kappa[first],
			where))
	default:
		second := r.order[1]
		wonToo, allToo := r.won(second)
		s = append(s,
			fmt.Sprintf("**%s** ranks first of %d: it wins %s of %.0f pairwise comparisons (κ = %.2f), "+
				"ahead of **%s** with %s (κ = %.2f), %s.", c.names[first], len(c.methods), half(won), all,
				r.Kappa[first], c.names[second], ofAll(wonToo, allToo, all), r.Kappa[second], where))
		if wonToo*all > won*allToo {
			s = append(s, "Log-odds reward beating one rival every time more than winning more comparisons.")
		}
	}
	if len(best) == 1 {
		if doubt := c.doubt(r); doubt != "" {
			s = append(s, doubt)
		}
		if len(c.cases) > 1 {
			s = append(s, c.dissent(first))
		}
	}
	if rho, pairs := stat.Agreement(c.quality); pairs > 0 {
		// The thresholds are those of Duan et al., figure 3.
		word := "weakly"
		if rho > 0.8 {
			word = "strongly"
		} else if rho >= 0.6 {
			word = "moderately"
		}
		if pairs == 1 {
			s = append(s, fmt.Sprintf("Two cases agree %s on the order (Spearman ρ = %.2f).", word, rho))
		} else {
			s = append(s,
				fmt.Sprintf("The cases agree %s on the order (mean Spearman ρ = %.2f over %d pairs "+
					"of cases).", word, rho, pairs))
		}
	}
	return strings.Join(s, " ") + c.remarks() + "\n"
}

// doubt says how much the first place depends on the choice of cases.
func (c *contest) doubt(r result) string {
	first := r.order[0]
	if math.IsNaN(r.kappa[first].Low) {
		return ""
	}
	var others []string
	for _, i := range r.order[1:] {
		if r.rank[i].Low == 1 {
			others = append(others, "**"+c.names[i]+"**")
		}
	}
	s := fmt.Sprintf("Over resamples of the cases κ is %.2f to %.2f (95 %%), and ", r.kappa[first].Low,
		r.kappa[first].High)
	switch len(others) {
	case 0:
		return s + "no other method comes first."
	case 1:
		return s + others[0] + " may come first as well."
	}
	return s + english.And(others) + " may come first as well."
}

// dissent names the cases in which other methods than the winner have the best mean.
func (c *contest) dissent(winner int) string {
	var others []string
	shared, in := 0, 0
	for k, m := range c.cases {
		if !c.present(k, winner) {
			continue
		}
		in++
		var best []string
		for i := range c.methods {
			if m.Rank(c.at[i]) == 1 {
				best = append(best, c.names[i])
			}
		}
		switch {
		case m.Rank(c.at[winner]) != 1:
			others = append(others, m.name+" ("+strings.Join(best, ", ")+")")
		case len(best) > 1:
			shared++
		}
	}
	switch {
	case len(others) > 0:
		return fmt.Sprintf("Another has the best mean in %d of %d cases: %s.", len(others), in, some(others))
	case shared > 0:
		return fmt.Sprintf("No other has a better mean in any case; in %d of %d it ties.", shared, in)
	case in < len(c.cases):
		return "It has the best mean in every case that it is in."
	}
	return "It has the best mean in every case."
}

// remarks lists what was excluded.
func (c *contest) remarks() string {
	var s strings.Builder
	s.WriteString(c.seeds + c.estimated())
	if c.twins != "" {
		s.WriteString(" " + c.twins)
	}
	undefined, absences := 0, map[string]int{}
	for i, method := range c.names {
		undefined += c.undefined(i)
		for k := range c.cases {
			if !c.present(k, i) {
				absences[method]++
			}
		}
	}
	switch {
	case undefined == 1:
		fmt.Fprintf(&s, " 1 of %d scores is undefined; %s counts in a case only if every method there "+
			"has a score.", c.scores, english.A(c.items))
	case undefined > 1:
		fmt.Fprintf(&s, " %d of %d scores are undefined; %s counts in a case only if every method "+
			"there has a score.", undefined, c.scores, english.A(c.items))
	}
	if len(absences) > 0 {
		var names []string
		for _, method := range c.names {
			if n := absences[method]; n > 0 {
				names = append(names, fmt.Sprintf("%s (in %d of %d)", method, n, len(c.cases)))
			}
		}
		fmt.Fprintf(&s, " Missing in some cases: %s.", some(names))
	}
	if len(c.leftOut) > 0 {
		fmt.Fprintf(&s, " Left out: %s.", omitted(c.leftOut, "%s (%s)"))
	}
	if len(c.unranked) > 0 {
		fmt.Fprintf(&s, " Not ranked: %s.", omitted(c.unranked, "**%s** (%s)"))
	}
	return s.String()
}

func omitted(what []omission, format string) string {
	var names []string
	for _, o := range what {
		names = append(names, fmt.Sprintf(format, o.name, o.reason))
	}
	return some(names)
}

// casesText describes the number of cases and their axes.
func (c *contest) casesText() string {
	switch {
	case len(c.axes) == 0:
		return "one case"
	case len(c.cases) == 1:
		return "one case (" + c.cases[0].name + ")"
	}
	return fmt.Sprintf("%d cases (%s)", len(c.cases), strings.Join(c.axes, " × "))
}

// itemsText describes the number of images per case.
func (c *contest) itemsText() string {
	low, high := c.cases[0].N, c.cases[0].N
	for _, m := range c.cases {
		low, high = min(low, m.N), max(high, m.N)
	}
	switch {
	case low != high:
		return fmt.Sprintf("each over %d to %d %s", low, high, c.items)
	case len(c.cases) > 1:
		return "each over " + english.CountOf(low, c.items)
	}
	return "over " + english.CountOf(low, c.items)
}

// half formats a number of wins, which may be half a win.
func half(won float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", won), ".0") }

// ofAll formats wins of all comparisons, which are only named if they aren't usual ones.
func ofAll(won, all, usual float64) string {
	if all == usual {
		return half(won)
	}
	return fmt.Sprintf("%s of %.0f", half(won), all)
}

func some(names []string) string {
	if len(names) <= mentioned {
		return strings.Join(names, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(names[:mentioned], "; "), len(names)-mentioned)
}
