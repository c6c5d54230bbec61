package claims

import (
	"math"
	"regexp"
	"strings"

	"github.com/runexp/runexp/stages"
)

// NoAnswer returns the text of an answer that begins by saying that there is none, and why. Claims that are
// confirmed, or that no test of significance decides, are an answer: the sentence then follows their
// paragraph.
func NoAnswer(text string, tested stages.Table, level float64, why string) string {
	first := "No answer: " + why + ". "
	if paragraph, rest, ok := strings.Cut(text, "\n\n"); ok && len(tested.Rows) > 0 {
		if answers(tested, level) {
			return paragraph + "\n\n" + first + rest
		}
	}
	return first + text
}

// untestable matches the sentence of [Outcomes.method] that [Present] replaces.
var untestable = regexp.MustCompile(
	` (With .+ no difference can be confirmed, however large: it takes at least \d+); ` +
		`the counts are of directions alone\.`)

// Present begins an answer to claims, of which no test can confirm any, by saying so.
func Present(text string, tables map[string]stages.Table) string {
	m := untestable.FindStringSubmatch(text)
	if m == nil || answers(tables["claims"], Level) {
		return text
	}
	why := strings.Replace(m[1], ": it takes", "; it takes", 1)
	return NoAnswer(strings.Replace(text, m[0], "", 1), tables["claims"], Level,
		"w"+strings.TrimPrefix(why, "W")+", and the counts are of directions alone")
}

// answers reports whether a table of claims has a claim that is confirmed, or that no test of significance
// decides.
func answers(t stages.Table, level float64) bool {
	for _, r := range t.Rows {
		for k, c := range t.Numbers {
			x := float64(r.Numbers[k])
			if c.Name == "confirmed" && x > 0 || c.Name == "p" && (math.IsNaN(x) || x <= level) {
				return true
			}
		}
	}
	return false
}
