package claims

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/runexp/runexp/stages"
)

// NoAnswer returns the text of an answer that begins by saying that there is none, and why. The rest is a
// paragraph of its own, which describes these items alone, such as images. Claims that are confirmed, or that
// no test of significance decides, are an answer: the sentence then follows their paragraph.
func NoAnswer(text string, tested stages.Table, level float64, why, items string) string {
	first := "No answer: " + why + ".\n\nWhat follows describes these " + items + " alone. "
	if paragraph, rest, ok := strings.Cut(text, "\n\n"); ok && len(tested.Rows) > 0 {
		if answers(tested, level) {
			return paragraph + "\n\n" + first + rest
		}
	}
	return first + text
}

// TooFew says why nothing can be confirmed: a case has items such as "3 to 4 images", and least are needed
// among "15 methods".
func TooFew(items, among string, least int) string {
	return fmt.Sprintf("with %s no difference of %s can be confirmed, however large; it takes at least %d",
		items, among, least)
}

// untestable matches the sentence of [Outcomes.method] that [Present] replaces.
var untestable = regexp.MustCompile(
	` (With \d+ (\w+) no difference can be confirmed, however large: it takes at least \d+); ` +
		`the counts are of directions alone\.`)

// Present begins an answer to claims, of which no test can confirm any, by saying so.
func Present(text string, tables map[string]stages.Table) string {
	m := untestable.FindStringSubmatch(text)
	if m == nil || answers(tables["claims"], Level) {
		return text
	}
	why := strings.Replace(m[1], ": it takes", "; it takes", 1)
	return NoAnswer(strings.Replace(text, m[0], "", 1), tables["claims"], Level,
		"w"+strings.TrimPrefix(why, "W")+", and the counts are of directions alone", m[2])
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
