package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// answer summarises the tables in words.
func (b *board) answer() string {
	if len(b.competitors) < 2 {
		return fmt.Sprintf("Only **%s** competes: there is nothing to rank.\n", b.competitors[0])
	}
	if b.ranked == 0 {
		return fmt.Sprintf("Nothing can be ranked: in none of %s all %d have scores with a common "+
			"direction for the same images.\n", count(len(b.cases), "case"), len(b.competitors))
	}
	var s []string
	first, second := b.order[0], b.order[1]
	where := "in the one case"
	if b.ranked > 1 {
		where = fmt.Sprintf("over %d cases (%s)", b.ranked, strings.Join(b.others, " × "))
	}
	switch {
	case slices.Max(b.mean) == b.mean[first]:
		s = append(s, fmt.Sprintf("All %d come out equal %s.", len(b.competitors), where))
	case b.mean[second] == b.mean[first] && b.ranked == 1:
		s = append(s, fmt.Sprintf("%s tie first of %d.", b.tied(b.mean), len(b.competitors)))
	case b.mean[second] == b.mean[first]:
		s = append(s,
			fmt.Sprintf("%s share the best mean rank of %d, %.2f %s.", b.tied(b.mean), len(b.competitors),
				b.mean[first], where))
	case b.ranked == 1:
		s = append(s,
			fmt.Sprintf("**%s** is best of %d, ahead of **%s**.", b.competitors[first], len(b.competitors),
				b.competitors[second]))
	default:
		s = append(s,
			fmt.Sprintf("**%s** has the best mean rank of %d, %.2f %s, ahead of **%s** with %.2f.",
				b.competitors[first], len(b.competitors), b.mean[first], where, b.competitors[second],
				b.mean[second]))
	}
	s = append(s, b.leads()...)
	if rest := b.remarks(); rest != "" {
		s = append(s, rest)
	}
	return strings.Join(s, " ") + "\n"
}

// tied names the competitors with the best rank.
func (b *board) tied(rank []float64) string {
	var names []string
	for p := range b.competitors {
		if rank[p] == slices.Min(rank) {
			names = append(names, "**"+b.competitors[p]+"**")
		}
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// detailed is the number of cases up to which the answer describes each.
const detailed = 3

// leads describes by how much the best of each case leads, and whether chance explains it.
func (b *board) leads() []string {
	var s []string
	clear, cases := 0, 0
	for i := range b.cases {
		m := &b.cases[i]
		if !m.ranked {
			continue
		}
		cases++
		first, second := m.best()
		lead, low, high := m.lead(first, second)
		if low > 0 {
			clear++
		}
		if b.ranked > detailed {
			continue
		}
		in := "It"
		if m.name() != "" {
			in = "In " + m.name() + ", **" + b.competitors[first] + "**"
		}
		if m.rank[first] == m.rank[second] {
			if b.ranked > 1 { // the only case was described above
				s = append(s, fmt.Sprintf("In %s, %s tie first.", m.name(), b.tied(m.rank)))
			}
			continue
		}
		verdict := "which chance alone may explain"
		if low > 0 {
			verdict = "more than chance explains"
		}
		if math.IsNaN(low) {
			s = append(s,
				fmt.Sprintf("%s leads **%s** by %.3g, on one image.", in, b.competitors[second], lead))
			continue
		}
		s = append(s,
			fmt.Sprintf("%s leads **%s** by %.3g [%.3g, %.3g], %s (95 %% interval, paired over %s).",
				in, b.competitors[second], lead, low, high, verdict, count(len(m.shared[first]), "image")))
	}
	if b.ranked > detailed {
		s = append(s,
			fmt.Sprintf("The lead of the best over the second is more than chance explains in %d of %d "+
				"cases (95 %% intervals, paired by image).", clear, cases))
	}
	return s
}

// remarks lists what was excluded.
func (b *board) remarks() string {
	var s []string
	undefined, scores := 0, 0
	var left []string
	for i := range b.cases {
		m := &b.cases[i]
		if !m.ranked {
			left = append(left, m.name())
		}
		for _, c := range m.cells {
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
			fmt.Sprintf("%d of %d scores %s undefined; ranks use the images that have a score of every "+
				"competitor.", undefined, scores, be))
	}
	if len(left) > 0 {
		s = append(s, fmt.Sprintf("Not ranked: %s.", strings.Join(left, "; ")))
	}
	return strings.Join(s, " ")
}
