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
	if hint := withWord(name, known); hint != "" {
		return hint
	}
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

// withWord suggests the stages whose names lack only the family of an unknown name, or the few whose names
// have it and other words, such as attribute/kernel-shap for attribute/shap or shap.
func withWord(name string, known []string) string {
	family, words, full := strings.Cut(name, "/")
	if !full {
		family, words = "", name
	}
	var whole, with []string
	for _, k := range known {
		of, own, _ := strings.Cut(k, "/")
		switch {
		case words == "" || full && of != family:
		case own == words:
			whole = append(whole, fmt.Sprintf("%q", k))
		case strings.Contains("-"+own+"-", "-"+words+"-"):
			with = append(with, fmt.Sprintf("%q", k))
		}
	}
	if len(whole) > 0 {
		with = whole
	}
	if len(with) == 0 || len(with) > 3 {
		return ""
	}
	return "did you mean " + strings.Join(with, " or ") + "?"
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
