package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// SuggestStage returns a hint for an unknown stage. A name without a family is compared with the last parts
// of names.
func SuggestStage(name string, known []string) string {
	if !strings.Contains(name, "/") {
		own := make([]string, len(known))
		for i, k := range known {
			_, own[i], _ = strings.Cut(k, "/")
		}
		if i := slices.Index(own, stages.Nearest(name, own)); i >= 0 {
			return fmt.Sprintf("did you mean %q?", known[i])
		}
	}
	if hint := didYouMean(name, "stages", known); hint != "" {
		return hint
	}
	return `"runexp stages" lists them`
}

// didYouMean suggests the known name that is most similar to a mistyped one; if none is similar it lists
// the names, if they fit a line.
func didYouMean(name, what string, known []string) string {
	if hint := Guess(name, known); hint != "" {
		return hint
	}
	if list := strings.Join(known, ", "); list != "" && len(list) <= 200 {
		return what + ": " + list
	}
	return ""
}

// Guess suggests the known name that is most similar to a mistyped one, and returns "" if none is.
func Guess(name string, known []string) string {
	if k := stages.Nearest(name, known); k != "" {
		return fmt.Sprintf("did you mean %q?", k)
	}
	return ""
}
