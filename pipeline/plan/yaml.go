package plan

import (
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

// A yamlNode is a value of an experiment file with its place. Nodes don't change once read; aliases share
// them.
type yamlNode struct {
	kind   yamlKind
	quoted bool    // a text that was marked as one: "64"
	text   string  // of a scalar
	num    float64 // of a number; ±Inf and NaN as written
	int    int64   // of an int that fits
	fits   bool
	keys   []*yamlNode // of a map, in order
	vals   []*yamlNode // of a map or a list

	size      int // nodes in it, with aliases expanded
	src       *sourceText
	line, col int
	up        *yamlNode // what it's a part of
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

// keyTexts returns the keys of a map.
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
	if i := slices.IndexFunc(n.vals, func(v *yamlNode) bool { return v.text == text }); i >= 0 && n.kind == yamlList {
		return n.vals[i]
	}
	return n
}

// String returns the value as a message shows it.
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

// mergeYAML lays one map over another: maps are merged, everything else is replaced.
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

// classify finds the kind of a plain scalar. The rules are JSON's, so that people needn't know which words
// YAML takes for numbers, dates and truth values.
func (n *yamlNode) classify() {
	switch n.text {
	case "", "~", "null", "Null", "NULL":
		n.kind = yamlNull
		return
	case "true", "True", "TRUE", "false", "False", "FALSE":
		n.kind = yamlBool
		return
	}
	n.kind = yamlText
	t := strings.TrimPrefix(strings.TrimPrefix(n.text, "-"), "+")
	if t == "" {
		return
	}
	if t[0] == '.' && len(t) == 4 {
		switch strings.ToLower(t) {
		case ".inf", ".nan":
			n.kind = yamlFloat
			n.num, _ = strconv.ParseFloat(strings.Replace(n.text, ".", "", 1), 64)
		}
		return
	}
	if t[0] < '0' || t[0] > '9' || len(t) > 100 {
		return
	}
	whole := true
	for i := range len(t) {
		switch b := t[i]; {
		case b >= '0' && b <= '9':
		case (b == '.' || b == 'e' || b == 'E') && t[i-1] >= '0':
			whole = false
		case (b == '-' || b == '+') && (t[i-1] == 'e' || t[i-1] == 'E'):
		default:
			return
		}
	}
	if len(t) > 1 && t[0] == '0' && t[1] >= '0' && t[1] <= '9' {
		return // 007 and 2024-01-01 are texts
	}
	x, err := strconv.ParseFloat(n.text, 64)
	if err != nil && x == 0 {
		return
	}
	n.num = x
	if n.kind = yamlFloat; whole {
		n.kind = yamlInt
		n.int, err = strconv.ParseInt(n.text, 10, 64)
		n.fits = err == nil
	}
}
