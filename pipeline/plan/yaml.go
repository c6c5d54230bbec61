package plan

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A yamlKind is the type of a value of an experiment file.
type yamlKind int8

const (
	yamlNull yamlKind = iota
	yamlBool
	yamlInt
	yamlFloat
	yamlText
	yamlList
	yamlMap
)

// A yamlNode is a value of an experiment file with its place. Nodes don't change after parsing; aliases
// share them.
type yamlNode struct {
	kind   yamlKind
	quoted bool    // a text that was quoted: "64"
	text   string  // of a scalar
	num    float64 // of a number; ±Inf and NaN as written
	int    int64   // of an int that fits
	fits   bool
	keys   []*yamlNode // of a map, in order
	vals   []*yamlNode // of a map or a list

	size int // number of nodes in it, with aliases expanded
	place
}

// A place is the position of a value in a text.
type place struct {
	src       *sourceText
	line, col int
	up        *yamlNode // the value that contains it
	name      string    // its key, or [i]
}

// path returns the place in the data, stages.maps.with.steps.
func (n *yamlNode) path() string {
	if n.up == nil {
		return n.name
	}
	up := n.up.path()
	if up == "" || n.name == "" || n.name[0] == '[' {
		return up + n.name
	}
	return up + "." + n.name
}

// get returns the value under a key, or nil.
func (n *yamlNode) get(key string) *yamlNode {
	if n == nil || n.kind != yamlMap {
		return nil
	}
	if i := slices.IndexFunc(n.keys, func(k *yamlNode) bool { return k.text == key }); i >= 0 {
		return n.vals[i]
	}
	return nil
}

func (n *yamlNode) keyTexts() (texts []string) {
	if n != nil {
		for _, k := range n.keys {
			texts = append(texts, k.text)
		}
	}
	return texts
}

// scalar reports whether n is a single value.
func (n *yamlNode) scalar() bool { return n.kind < yamlList }

// element returns the element of a list that has this text, or n itself.
func (n *yamlNode) element(text string) *yamlNode {
	i := slices.IndexFunc(n.vals, func(v *yamlNode) bool { return v.text == text })
	if i < 0 || n.kind != yamlList {
		return n
	}
	return n.vals[i]
}

// within returns the value with the place of its character at a column, from 1, if its text stands on its
// line as it is; 0 is the whole value.
func (n *yamlNode) within(column int) *yamlNode {
	line := []rune(n.src.line(n.line))
	at := n.col - 1
	if n.quoted {
		at++
	}
	if column == 0 || at > len(line) || !strings.HasPrefix(string(line[at:]), n.text) {
		return n
	}
	inner := *n
	inner.col = at + column
	return &inner
}

// String returns the value in the form for messages.
func (n *yamlNode) String() string {
	switch n.kind {
	case yamlNull:
		return "nothing"
	case yamlList:
		return "a list"
	case yamlMap:
		return "a map"
	case yamlBool, yamlInt, yamlFloat:
		return n.text
	}
	if len(n.text) > 60 {
		return strconv.Quote(string([]rune(n.text[:60])[:50])) + "…"
	}
	return strconv.Quote(n.text)
}

// with returns a copy of the map n with key set to v.
func (n *yamlNode) with(key, v *yamlNode) *yamlNode {
	c := *n
	c.keys, c.vals = slices.Clone(n.keys), slices.Clone(n.vals)
	if i := slices.IndexFunc(c.keys, func(k *yamlNode) bool { return k.text == key.text }); i >= 0 {
		c.vals[i] = v
	} else {
		c.keys, c.vals = append(c.keys, key), append(c.vals, v)
	}
	return &c
}

// mergeYAML merges one map into another: maps are merged recursively, everything else is replaced.
func mergeYAML(base, over *yamlNode) *yamlNode {
	if base.kind != yamlMap || over.kind != yamlMap {
		return over
	}
	for i, k := range over.keys {
		v := over.vals[i]
		if b := base.get(k.text); b != nil {
			v = mergeYAML(b, v)
		}
		base = base.with(k, v)
	}
	return base
}

var yamlNumber = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][-+]?[0-9]+)?$`)

// classify finds the kind of a plain scalar. The rules are JSON's, so that people needn't know which words
// YAML reads as numbers, dates and truth values.
func (n *yamlNode) classify() {
	n.kind = yamlText
	switch n.text {
	case "", "~", "null", "Null", "NULL":
		n.kind = yamlNull
	case "true", "True", "TRUE", "false", "False", "FALSE":
		n.kind = yamlBool
	}
	switch strings.ToLower(strings.TrimLeft(n.text, "-+")) {
	case ".inf", ".nan":
		if x, err := strconv.ParseFloat(strings.Replace(n.text, ".", "", 1), 64); err == nil {
			n.kind, n.num = yamlFloat, x
		}
	}
	const longest = 100 // bytes of a number
	parts := yamlNumber.FindStringSubmatch(n.text[:min(len(n.text), longest+1)])
	if parts == nil || len(n.text) > longest {
		return
	}
	n.kind = yamlFloat
	n.num, _ = strconv.ParseFloat(n.text, 64) // too large a number is infinite
	if parts[2] == "" && parts[3] == "" {
		n.kind = yamlInt
		var err error
		n.int, err = strconv.ParseInt(n.text, 10, 64)
		n.fits = err == nil
	}
}
