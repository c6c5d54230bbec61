package registry

import (
	"regexp"
	"strings"

	"github.com/runexp/runexp/docs"
	"github.com/runexp/runexp/stages"
)

// elsewhereWay is what to do with a method or metric that isn't here.
const elsewhereWay = "attribute/external reads maps of other programs, and score/external their scores"

var (
	quotedCode  = regexp.MustCompile("`([^`]+)`")
	abbreviated = regexp.MustCompile(`\(([^)]+)\)`)
	isStage     = regexp.MustCompile(`^[a-z]+/[a-z0-9-]+$`)
)

// Elsewhere returns a hint for a name of the field or of another library: the stages that make it here, or
// that none does, why, and what to do. It returns "" for an unknown name. [Metrics] and docs/coming-from.md
// are its tables.
func (s *Set) Elsewhere(name string) string {
	plain := stages.Plain(name)
	if plain == "" {
		return ""
	}
	for _, m := range Metrics() {
		for _, known := range m.names() {
			if stages.Plain(known) == plain {
				return known + ": " + m.Here
			}
		}
	}
	absent := ""
	for line := range strings.Lines(docs.ComingFrom()) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		known := nameIn(cells[1], plain)
		if known == "" {
			continue
		}
		var here []string
		for _, m := range quotedCode.FindAllStringSubmatch(cells[2], -1) {
			if isStage.MatchString(m[1]) {
				here = append(here, m[1])
			}
		}
		if len(here) > 0 {
			return known + ": " + strings.Join(here, ", ") + " (docs/coming-from.md says what differs)"
		}
		if absent == "" && strings.Contains(cells[2], "*not here*") {
			absent = known + " isn't here"
			if why := strings.TrimSpace(strings.ReplaceAll(cells[3], "`", "")); why != "" {
				absent += " (" + why + ")"
			}
			absent += ": " + elsewhereWay
		}
	}
	return absent
}

// names returns the metric's names: in words, abbreviated, and as libraries call it.
func (m Metric) names() []string {
	list := []string{strings.TrimSpace(abbreviated.ReplaceAllString(m.Name, ""))}
	for _, in := range abbreviated.FindAllStringSubmatch(m.Name, -1) {
		list = append(list, strings.Split(in[1], ", ")...)
	}
	for _, name := range strings.Split(m.Elsewhere, ", ") {
		if _, own, ok := strings.Cut(name, " "); ok {
			list = append(list, own)
		}
	}
	return list
}

// nameIn returns the name in a cell of the page that is the plain one, without a module or a call's
// arguments, or "".
func nameIn(cell, plain string) string {
	for _, m := range quotedCode.FindAllStringSubmatch(cell, -1) {
		name, _, _ := strings.Cut(strings.TrimPrefix(m[1], "metrics."), "(")
		if stages.Plain(name) == plain {
			return name
		}
	}
	return ""
}
