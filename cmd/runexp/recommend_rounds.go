package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	finalists   = 4    // that the confirmation compares
	choosing    = 0.6  // of the time, for the rounds before it
	reserve     = 0.9  // of the time left that an estimate may take
	significant = 0.05 // level of the confirmation
)

// A round compares so many candidates on so many images. Those of a round are among those of the next one.
type round struct {
	Candidates int `json:"candidates"`
	Images     int `json:"images"`
}

func (r round) String() string { return fmt.Sprintf("%dx%d", r.Candidates, r.Images) }

// A schedule has all decisions that depend on a machine's speed.
type schedule struct {
	Rounds []round `json:"rounds"` // by which finalists are chosen
	Final  round   `json:"final"`  // of finalists, on images of its own; zero while undecided
}

// decided reports whether nothing is open.
func (s schedule) decided() bool { return s.Final.Candidates > 0 }

// String writes the schedule as [parseSchedule] reads it: 30x2,15x6,8x16,4x24.
func (s schedule) String() string {
	var words []string
	for _, r := range append(slices.Clone(s.Rounds), s.Final) {
		words = append(words, r.String())
	}
	return strings.Join(words, ",")
}

func parseSchedule(text string) (s schedule, err error) {
	const form = "%q isn't candidates×images for each round, such as 30x2,15x6,8x16,4x24: "
	for word := range strings.SplitSeq(text, ",") {
		left, right, ok := strings.Cut(strings.ReplaceAll(word, "×", "x"), "x")
		candidates, errLeft := strconv.Atoi(left)
		images, errRight := strconv.Atoi(right)
		if !ok || errLeft != nil || errRight != nil || candidates < 1 || images < 0 {
			return s, misuse(form+"%q is no round", text, word)
		}
		s.Rounds = append(s.Rounds, round{candidates, images})
	}
	last := len(s.Rounds) - 1
	if last < 1 {
		return s, misuse(form+"it takes at least one round, and the confirmation", text)
	}
	s.Rounds, s.Final = s.Rounds[:last], s.Rounds[last]
	before := s.Rounds[0]
	for _, r := range s.Rounds {
		if r.Candidates > before.Candidates || r.Images < max(before.Images, 1) {
			return s, misuse(form+"from %v to %v candidates don't become fewer, or images more", text, before,
				r)
		}
		before = r
	}
	if s.Final.Candidates > before.Candidates {
		return s, misuse(form+"the confirmation has more candidates than the last round", text)
	}
	return s, nil
}

// A price is the seconds that a candidate takes.
type price struct {
	image   float64 // for each image
	loading float64 // in each round
}

// total adds prices.
func total(prices []price) (sum price) {
	for _, p := range prices {
		sum.image += p.image
		sum.loading += p.loading
	}
	return sum
}

// first decides the first round of a schedule: all candidates on as many images as its share of the time
// allows, or on one if that takes more, but not more than most; or else the cheapest. prices are in
// ascending order.
func first(prices []price, images int, share, most time.Duration) round {
	n := len(prices)
	for n > 1 && total(prices[:n]).seconds(1) > most.Seconds() {
		n--
	}
	return round{n, max(1, more(0, images, total(prices[:n]), share))}
}

// seconds is what so many images take.
func (p price) seconds(images int) float64 { return p.loading + p.image*float64(images) }

// more returns how many images a round can have: those of the round before, and what the time allows.
func more(before, images int, p price, share time.Duration) int {
	left := share.Seconds() - p.loading
	if left <= 0 {
		return before
	}
	return min(images, before+int(math.Min(float64(images), left/p.image)))
}

// roundsLeft is the number of rounds until few enough candidates are left, at least 1: each keeps half.
func roundsLeft(candidates int) (n int) {
	for n = 1; candidates > 2*finalists; n++ {
		candidates = half(candidates)
	}
	return n
}

// half is the number of candidates that go on.
func half(candidates int) int { return (candidates + 1) / 2 }

// next decides the round after another, ok is false if the finalists are to be chosen now. prices are
// those of the candidates of the round before, best first.
func next(before round, prices []price, images int, left time.Duration) (r round, ok bool) {
	r = before
	for r.Candidates > 2*finalists {
		share := max(0, left) / time.Duration(max(roundsLeft(r.Candidates)-1, 1))
		r.Candidates = half(r.Candidates)
		r.Images = more(before.Images, images, total(prices[:r.Candidates]), share)
		if r.Images > before.Images {
			return r, true
		}
	}
	return before, false
}

// comparisons is the number of comparisons of which a test of so many images can confirm one: p is at least
// 2/2ⁿ, and Holm's first threshold is the level over their number.
func comparisons(images int) int {
	if images > 30 {
		return math.MaxInt32
	}
	return int(significant * math.Ldexp(1, images-1))
}

// A standing is a candidate after a round, with its mean.
type standing struct {
	candidate
	Mean    float64
	Defined int // images with a score
	Images  int
}

// ranked sorts candidates by the means of their scores, best first; those without a score on half of the
// images come last, in their order. Equal means keep theirs.
func ranked(from []candidate, scores map[string][]float64, lower bool) []standing {
	var out []standing
	for _, c := range from {
		s := standing{candidate: c, Images: len(scores[c.id])}
		for _, x := range scores[c.id] {
			if !math.IsNaN(x) {
				s.Mean += x
				s.Defined++
			}
		}
		s.Mean /= float64(s.Defined)
		out = append(out, s)
	}
	slices.SortStableFunc(out, func(a, b standing) int {
		switch known, other := a.known(), b.known(); {
		case known != other && known:
			return -1
		case known != other:
			return 1
		case !known:
			return 0
		case lower:
			return cmp.Compare(a.Mean, b.Mean)
		}
		return cmp.Compare(b.Mean, a.Mean)
	})
	return out
}

// distinct divides candidates into those with scores of their own, and the others, which have the same
// scores as an earlier one on every image: a tie of two settings is no choice.
func distinct(of []candidate, scores map[string][]float64) (own []candidate, same []absence) {
	seen := map[string]string{}
	for _, c := range of {
		key := fmt.Sprint(scores[c.id])
		if first, ok := seen[key]; ok {
			same = append(same, absence{c.id, "the scores of " + first})
			continue
		}
		seen[key] = c.id
		own = append(own, c)
	}
	return own, same
}

// known reports whether at least half of the images have a score.
func (s standing) known() bool { return s.Defined > 0 && 2*s.Defined >= s.Images }

// finalistsOf returns the best setting of each method, at most n of them, best first.
func finalistsOf(list []standing, n int) (out []standing) {
	seen := map[string]bool{}
	for _, s := range list {
		if len(out) < n && s.known() && !seen[s.method] {
			out, seen[s.method] = append(out, s), true
		}
	}
	return out
}
