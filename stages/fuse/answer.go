package fuse

import (
	"fmt"
	"strings"

	"github.com/runexp/runexp/stages/internal/stat"
)

// mentioned is the number of cases that a sentence names before it counts the rest.
const mentioned = 5

// answer summarises the tables in words.
func answer(c *contest, f stat.Fusion, order []int, quality [][]float64) string {
	if len(c.methods) == 1 {
		return fmt.Sprintf("Only **%s** competes: there is nothing to rank.%s\n", c.methods[0], notRanked(c))
	}
	var best []string
	for _, i := range order {
		if f.Rank[i] == 1 {
			best = append(best, "**"+c.methods[i]+"**")
		}
	}
	first := order[0]
	comparisons := len(c.complete) * (len(c.methods) - 1)
	where := fmt.Sprintf("in %s, %s", casesText(c), imagesText(c))

	var s []string
	switch {
	case len(best) == len(c.methods):
		return fmt.Sprintf("All %d methods come out equal %s.%s\n", len(best), where, remarks(c))
	case len(best) > 1:
		s = append(s, fmt.Sprintf("%s share the first place of %d: each wins %s of %d duels (κ = %.2f) %s.",
			list(best), len(c.methods), wins(f, first), comparisons, f.Kappa[first], where))
	default:
		second := order[1]
		s = append(s,
			fmt.Sprintf("**%s** ranks first of %d: it wins %s of %d duels (κ = %.2f), ahead of **%s** with "+
				"%s (κ = %.2f), %s.",
				c.methods[first], len(c.methods), wins(f, first), comparisons, f.Kappa[first],
				c.methods[second],
				wins(f, second), f.Kappa[second], where))
		if won(f, second) > won(f, first) {
			s = append(s, "Log-odds reward beating one rival every time more than winning more duels.")
		}
	}
	if len(c.complete) > 1 && len(best) == 1 {
		s = append(s, dissent(c, first))
	}
	if rho, pairs := stat.Agreement(quality); pairs > 0 {
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
	return strings.Join(s, " ") + remarks(c) + "\n"
}

// dissent names the cases in which other methods than the winner have the best mean.
func dissent(c *contest, winner int) string {
	var others []string
	shared := 0
	for _, m := range c.complete {
		var best []string
		for i := range c.methods {
			if m.rank(i) == 1 {
				best = append(best, c.methods[i])
			}
		}
		switch {
		case m.rank(winner) != 1:
			others = append(others, m.name()+" ("+strings.Join(best, ", ")+")")
		case len(best) > 1:
			shared++
		}
	}
	switch {
	case len(others) > 0:
		return fmt.Sprintf("Another has the best mean in %d of %d cases: %s.", len(others), len(c.complete),
			some(others))
	case shared > 0:
		return fmt.Sprintf("No other has a better mean in any case; in %d of %d it ties.", shared,
			len(c.complete))
	}
	return "It has the best mean in every case."
}

// remarks lists what was excluded.
func remarks(c *contest) string {
	var s strings.Builder
	undefined := 0
	for _, m := range c.complete {
		for _, n := range m.undefined {
			undefined += n
		}
	}
	switch {
	case undefined == 1:
		fmt.Fprintf(&s,
			" 1 of %d scores is undefined; an image counts in a case only if every method has a score there.",
			c.scores)
	case undefined > 1:
		fmt.Fprintf(&s,
			" %d of %d scores are undefined; an image counts in a case only if every method has a score "+
				"there.", undefined, c.scores)
	}
	if len(c.incomplete) > 0 {
		var names []string
		for _, m := range c.incomplete {
			names = append(names, m.name()+" ("+m.reason+")")
		}
		fmt.Fprintf(&s, " Left out: %s.", some(names))
	}
	return s.String() + notRanked(c)
}

// notRanked names the methods without a defined score.
func notRanked(c *contest) string {
	if len(c.unscored) == 0 {
		return ""
	}
	var names []string
	for _, s := range c.unscored {
		names = append(names, fmt.Sprintf("**%s** (all %d scores are undefined)", s.method, s.scores))
	}
	return " Not ranked: " + some(names) + "."
}

// casesText describes the number of cases and their axes.
func casesText(c *contest) string {
	switch {
	case len(c.axes) == 0:
		return "one case"
	case len(c.complete) == 1:
		return "one case (" + c.complete[0].name() + ")"
	}
	return fmt.Sprintf("%d cases (%s)", len(c.complete), strings.Join(c.axes, " × "))
}

// imagesText describes the number of images per case.
func imagesText(c *contest) string {
	low, high := c.complete[0].n, c.complete[0].n
	for _, m := range c.complete {
		low, high = min(low, m.n), max(high, m.n)
	}
	switch {
	case low != high:
		return fmt.Sprintf("each over %d to %d images", low, high)
	case len(c.complete) > 1 && low == 1:
		return "each over 1 image"
	case low == 1:
		return "over 1 image"
	case len(c.complete) > 1:
		return fmt.Sprintf("each over %d images", low)
	}
	return fmt.Sprintf("over %d images", low)
}

func wins(f stat.Fusion, p int) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", won(f, p)), ".0")
}

func list(names []string) string {
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

func some(names []string) string {
	if len(names) <= mentioned {
		return strings.Join(names, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(names[:mentioned], "; "), len(names)-mentioned)
}
