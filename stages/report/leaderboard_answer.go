package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages/internal/english"
	"github.com/runexp/runexp/stages/internal/scores"
	"github.com/runexp/runexp/stages/interval"
)

// answer summarises the tables in words.
func (b *board) answer() string {
	if len(b.competitors) < 2 {
		return fmt.Sprintf("Only **%s** competes: there is nothing to rank.\n", b.names[0])
	}
	if b.ranked == 0 {
		return fmt.Sprintf("Nothing can be ranked: in none of %s all %d have scores with a common "+
			"direction for the same %s.\n", english.Count(len(b.cases), "case"), len(b.competitors), b.items)
	}
	s := []string{b.ranking() + "."}
	// Neighbours are no pairs with the best.
	if slices.Max(b.mean) > b.mean[b.order[0]] && b.family.Against == scores.Pairs {
		s[0] = b.ranking() + b.neighbours() + "."
	}
	s = append(s, b.leads()...)
	if b.twins != "" {
		s = append(s, b.twins)
	}
	if rest := b.remarks(); rest != "" {
		s = append(s, rest)
	}
	return strings.Join(s, " ") + b.seeds + b.exact.Sentence() + "\n"
}

// ranking names the first competitors.
func (b *board) ranking() string {
	first, second := b.order[0], b.order[1]
	where := "in the one case"
	if b.ranked > 1 {
		where = fmt.Sprintf("over %d cases (%s)", b.ranked, strings.Join(b.others, " × "))
	}
	switch {
	case slices.Max(b.mean) == b.mean[first]:
		return fmt.Sprintf("All %d come out equal %s", len(b.competitors), where)
	case b.mean[second] == b.mean[first] && b.ranked == 1:
		return fmt.Sprintf("%s tie first of %d", b.tied(b.mean), len(b.competitors))
	case b.mean[second] == b.mean[first]:
		return fmt.Sprintf("%s share the best mean rank of %d, %.2f %s", b.tied(b.mean), len(b.competitors),
			b.mean[first], where)
	case b.ranked == 1:
		return fmt.Sprintf("**%s** ranks first of %d, ahead of **%s**", b.names[first],
			len(b.competitors), b.names[second])
	}
	return fmt.Sprintf("**%s** ranks first in %d of %d cases (%s), with the best mean rank of %d, %.2f",
		b.names[first], b.first[first], b.ranked, strings.Join(b.others, " × "), len(b.competitors),
		b.mean[first])
}

// named is the number of pairs that the first sentence names.
const named = 3

// neighbours names the pairs of neighbours in the ranking that differ significantly in no case. The p-value
// is the smallest one of the cases, times their number.
func (b *board) neighbours() string {
	var pairs []string
	more := 0
	for k := range len(b.order) - 1 {
		x, y := b.order[k], b.order[k+1]
		p := math.NaN()
		for i := range b.cases {
			if m := &b.cases[i]; m.ranked && !(m.p[x][y]*float64(b.ranked) >= p) {
				p = min(1, m.p[x][y]*float64(b.ranked))
			}
		}
		switch {
		case p <= level:
		case len(pairs) == named:
			more++
		default:
			pairs = append(pairs, fmt.Sprintf("**%s** and **%s**", b.names[x], b.names[y]))
			if !math.IsNaN(p) {
				pairs[len(pairs)-1] += fmt.Sprintf(" (p = %.2g)", p)
			}
		}
	}
	if more > 0 {
		pairs = append(pairs, english.Count(more, "further pair"))
	}
	where := ""
	if b.ranked > 1 {
		where = " in some case"
	}
	switch {
	case len(pairs) == 0 && len(b.order) == 2:
		return "; they can be told apart" + where
	case len(pairs) == 0:
		return "; each can be told apart from the next" + where
	case len(pairs) == len(b.order)-1 && len(pairs) > 1:
		return "; none can be told apart from the next"
	}
	return "; " + strings.Join(pairs, ", ") + " can't be told apart"
}

// tied names the competitors with the best rank.
func (b *board) tied(rank []float64) string {
	var names []string
	for p := range b.competitors {
		if rank[p] == slices.Min(rank) {
			names = append(names, "**"+b.names[p]+"**")
		}
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// detailed is the number of cases up to which the answer describes each.
const detailed = 3

// leads describes by how much the best competitor of each case leads, and whether that is confirmed.
func (b *board) leads() []string {
	var s []string
	clear, cases, fewest, most := 0, 0, math.MaxInt, 0
	for i := range b.cases {
		m := &b.cases[i]
		if !m.ranked {
			continue
		}
		cases++
		first, second := m.best()
		n := m.Sampled(first, second).Len()
		fewest, most = min(fewest, n), max(most, n)
		if !m.alike(first, second) {
			clear++
		}
		if b.ranked > detailed {
			continue
		}
		in := "It"
		if m.Name != "" {
			in = "In " + m.Name + ", **" + b.names[first] + "**"
		}
		if m.rank[first] == m.rank[second] {
			if b.ranked > 1 { // the only case was described above
				s = append(s, fmt.Sprintf("In %s, %s tie first.", m.Name, b.tied(m.rank)))
			}
			continue
		}
		lead, low, high := m.lead(first, second)
		if math.IsNaN(low) {
			s = append(s,
				fmt.Sprintf("%s leads **%s** by %.3g, on one %s.", in, b.names[second], lead,
					english.Singular(b.items)))
			continue
		}
		verdict := "not confirmed"
		if !m.alike(first, second) {
			verdict = "confirmed"
		}
		s = append(s, fmt.Sprintf("%s leads **%s** by %.3g [%.3g, %.3g] over %s, %s (p = %.2g, n = %d).",
			in, b.names[second], lead, low, high, english.CountOf(m.shared[first].Len(), b.items), verdict,
			m.p[first][second], n))
	}
	if b.ranked > detailed {
		s = append(s, fmt.Sprintf("The lead of the best over the second is confirmed in %d of %d cases.",
			clear, cases))
	}
	method := "uncorrected: of many pairs that are equal one in twenty seems to differ"
	switch {
	case b.family.Holm && b.family.Against == scores.Best:
		method = "corrected by Holm for the comparisons with the best of a case alone"
	case b.family.Holm:
		method = "corrected by Holm for all pairs in a case"
	}
	switch least := b.family.Least(); {
	case most < least:
		items := english.CountOf(most, b.items)
		if fewest < most {
			items = fmt.Sprintf("%d to %s", fewest, items)
		}
		s = append(s, fmt.Sprintf("With %s no difference can be confirmed, however large: it takes at least "+
			"%d.", items, least))
	case fewest < least:
		s = append(s, fmt.Sprintf("In a case with %s no difference can be confirmed, however large: it "+
			"takes at least %d.", english.CountOf(fewest, b.items), least))
	}
	if slices.ContainsFunc(s, func(s string) bool { return strings.Contains(s, "[") }) {
		s = append(s, fmt.Sprintf("Brackets are the %s of the paired difference.", interval.Label(b.items)))
	}
	if few := interval.Few(fewest, b.items); few != "" {
		s = append(s, few)
	}
	return append(s, fmt.Sprintf("p is of Wilcoxon's signed-rank test, %s; at most %g confirms.", method,
		level))
}

// remarks lists what was excluded.
func (b *board) remarks() string {
	var s []string
	undefined, scores := 0, 0
	var left []string
	for i := range b.cases {
		m := &b.cases[i]
		if !m.ranked {
			left = append(left, m.Name)
		}
		for _, c := range m.Cells {
			if c != nil {
				_, missing := c.Defined()
				undefined += missing
				scores += len(c.Scores.Values)
			}
		}
	}
	if undefined > 0 {
		be := "are"
		if undefined == 1 {
			be = "is"
		}
		s = append(s,
			fmt.Sprintf("%d of %d scores %s undefined; ranks use the %s that have a score of every "+
				"competitor.", undefined, scores, be, b.items))
	}
	if len(left) > 0 {
		s = append(s, fmt.Sprintf("Not ranked: %s.", strings.Join(left, "; ")))
	}
	return strings.Join(s, " ")
}
