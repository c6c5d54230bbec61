package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// SuggestStage returns a hint for an unknown stage. In this order: a stage whose name differs by case,
// hyphens or family alone; what a library's name is called here; stages with that word; a similar spelling.
func SuggestStage(name string, cat Catalog) string {
	known := cat.Names()
	if hint := sameName(name, known); hint != "" {
		return hint
	}
	_, own, full := strings.Cut(name, "/")
	if !full {
		own = name
	}
	if t, ok := cat.(Translator); ok {
		if hint := t.Elsewhere(own); hint != "" {
			return hint
		}
	}
	if hint := withWord(name, known); hint != "" {
		return hint
	}
	if !full {
		short := make([]string, len(known))
		for i, k := range known {
			_, short[i], _ = strings.Cut(k, "/")
		}
		if i := slices.Index(short, stages.Nearest(name, short)); i >= 0 {
			return fmt.Sprintf("did you mean %q?", known[i])
		}
	}
	if hint := didYouMean(name, "stages", known); hint != "" {
		return hint
	}
	return `"runexp stages" lists them`
}

// sameName suggests the stages whose names differ from an unknown one by case, hyphens or family alone, such
// as attribute/kernel-shap for KernelSHAP. Those of its family come before others.
func sameName(name string, known []string) string {
	family, words, full := strings.Cut(name, "/")
	if !full {
		words = name
	}
	var within, all []string
	for _, k := range known {
		of, own, _ := strings.Cut(k, "/")
		if words == "" || stages.Plain(own) != stages.Plain(words) {
			continue
		}
		all = append(all, fmt.Sprintf("%q", k))
		if of == family {
			within = append(within, fmt.Sprintf("%q", k))
		}
	}
	if len(within) > 0 {
		all = within
	}
	return orNone(all)
}

// withWord suggests the few stages whose names have the unknown name and other words, such as
// attribute/kernel-shap for attribute/shap or shap.
func withWord(name string, known []string) string {
	family, words, full := strings.Cut(name, "/")
	if !full {
		words = name
	}
	var with []string
	for _, k := range known {
		of, own, _ := strings.Cut(k, "/")
		if words != "" && (!full || of == family) &&
			strings.Contains("-"+own+"-", "-"+strings.ToLower(words)+"-") {
			with = append(with, fmt.Sprintf("%q", k))
		}
	}
	return orNone(with)
}

// orNone asks whether one of a few quoted names is meant, and returns "" for none or many.
func orNone(quoted []string) string {
	if len(quoted) == 0 || len(quoted) > 3 {
		return ""
	}
	return "did you mean " + strings.Join(quoted, " or ") + "?"
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
