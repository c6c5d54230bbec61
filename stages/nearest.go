package stages

import "strings"

// Plain returns the letters and digits of a name in lower case, so that GradCAM++ and grad-cam-plus-plus are
// the same.
func Plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ReplaceAll(strings.ToLower(name), "++", "plusplus"))
}

// Nearest returns the known name that is most similar to a mistyped one, "" if none is similar.
func Nearest(name string, known []string) string {
	best, at := len([]rune(name))/3+2, ""
	for _, k := range known {
		if d := editDistance(name, k, best); d < best {
			best, at = d, k
		}
	}
	return at
}

// editDistance counts the insertions, deletions, replacements and swaps of neighbours that turn a into b,
// and returns limit once the count can't be smaller.
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
