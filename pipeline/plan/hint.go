package plan

import (
	"fmt"
	"slices"
	"strings"
)

// SuggestStage returns a hint for an unknown stage. A name without a family is compared with the last parts.
func SuggestStage(name string, known []string) string {
	if !strings.Contains(name, "/") {
		own := make([]string, len(known))
		for i, k := range known {
			_, own[i], _ = strings.Cut(k, "/")
		}
		if i := slices.Index(own, nearest(name, own)); i >= 0 {
			return fmt.Sprintf("did you mean %q?", known[i])
		}
	}
	if hint := didYouMean(name, "stages", known); hint != "" {
		return hint
	}
	return `"runexp stages" lists them`
}

// didYouMean suggests the known name nearest to a mistyped one; without a near one it lists them, as long as
// they fit a line.
func didYouMean(name, what string, known []string) string {
	if hint := Guess(name, known); hint != "" {
		return hint
	}
	if list := strings.Join(known, ", "); list != "" && len(list) <= 200 {
		return what + ": " + list
	}
	return ""
}

// Guess asks for the known name that is most like a mistyped one, and returns "" if none is.
func Guess(name string, known []string) string {
	if k := nearest(name, known); k != "" {
		return fmt.Sprintf("did you mean %q?", k)
	}
	return ""
}

func nearest(name string, known []string) string {
	best, at := len([]rune(name))/3+2, ""
	for _, k := range known {
		if d := editDistance(name, k, best); d < best {
			best, at = d, k
		}
	}
	return at
}

// editDistance counts the insertions, deletions, replacements and swaps of neighbours that turn a into b, and
// returns limit once it can't be less.
func editDistance(a, b string, limit int) int {
	r, s := []rune(a), []rune(b)
	if len(r)-len(s) >= limit || len(s)-len(r) >= limit {
		return limit
	}
	before, last, now := make([]int, len(s)+1), make([]int, len(s)+1), make([]int, len(s)+1)
	for j := range last {
		last[j] = j
	}
	for i := range r {
		now[0] = i + 1
		least := now[0]
		for j := range s {
			cost := 1
			if r[i] == s[j] {
				cost = 0
			}
			now[j+1] = min(last[j]+cost, last[j+1]+1, now[j]+1)
			if i > 0 && j > 0 && r[i] == s[j-1] && r[i-1] == s[j] {
				now[j+1] = min(now[j+1], before[j-1]+1)
			}
			least = min(least, now[j+1])
		}
		if least >= limit {
			return limit
		}
		before, last, now = last, now, before
	}
	return min(last[len(s)], limit)
}
