package plan

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Bounds of an experiment file's data. They keep hostile files from costing more
// than a moment.
const (
	maxYAMLNodes  = 200_000 // with aliases expanded
	maxYAMLDepth  = 40
	maxYAMLScalar = 64 << 10 // bytes
)

// parseYAML reads s, which holds one document. It returns nil when the text is
// no YAML, or YAML of a kind that experiments aren't written in, and complains.
func parseYAML(s *sourceText, c *complaints) *yamlNode {
	doc, err := readDocument(s.data)
	if err != nil {
		s.syntaxError(c, err)
		return nil
	}
	if doc == nil || len(doc.Content) == 0 || doc.Content[0].Kind == yaml.ScalarNode && doc.Content[0].Value == "" {
		s.complain(c, 1, 1, "", "the file is empty")
		return nil
	}
	s.line(1) // splits the lines
	t := yamlTree{src: s, complaints: c, seen: map[*yaml.Node]*yamlNode{}}
	n := t.convert(doc.Content[0], nil, "", 0)
	if t.refused {
		return nil
	}
	return n
}

var errSecondDocument = errors.New("a second document")

func readDocument(data []byte) (doc *yaml.Node, err error) {
	// The parser is careful, and others have found inputs that it wasn't careful
	// enough for.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("unreadable YAML (%v)", r)
		}
	}()
	d := yaml.NewDecoder(bytes.NewReader(data))
	doc = new(yaml.Node)
	if err := d.Decode(doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var next yaml.Node
	switch err := d.Decode(&next); {
	case errors.Is(err, io.EOF):
		return doc, nil
	case err != nil:
		return nil, err
	}
	return &next, errSecondDocument
}

var yamlErrorLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?(.*)$`)

// syntaxError says what is wrong with a text that is no YAML.
func (s *sourceText) syntaxError(c *complaints, err error) {
	if errors.Is(err, errSecondDocument) {
		line := 1
		for i := 2; s.line(i) != "" || i <= len(s.lines); i++ {
			if strings.HasPrefix(s.line(i), "---") {
				line = i
			}
		}
		s.complain(c, line, 1, "one experiment a file; share stanzas with extends", "a second document begins here")
		return
	}
	if s.unquotedReferences(c) {
		return
	}
	m := yamlErrorLine.FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", " "))
	line, _ := strconv.Atoi(m[1])
	hint := ""
	switch msg := m[2]; {
	case strings.HasPrefix(msg, "did not find expected"):
		line++ // the parser, unlike the scanner, counts from 0
		if strings.HasSuffix(msg, "key") || strings.HasSuffix(msg, "indicator") {
			line = s.blockErrorLine(line)
			hint = "look at the indentation of this line and the one before"
		} else if strings.Contains(msg, "',' or") {
			hint = "a { or [ that begins on this line isn't closed, or lacks a comma"
		}
	case strings.Contains(msg, "cannot start any token"):
		hint = "indent with spaces, and quote what begins with @, %, ` or a tab"
	case strings.HasPrefix(msg, "mapping values are not allowed"):
		hint = "quote a text that has a colon and a space in it, or look at the indentation"
	}
	s.line(1) // splits the lines
	line = max(1, min(line, len(s.lines)))
	text := s.line(line)
	col := 1 + len(text) - len(strings.TrimLeft(text, " \t"))
	s.complain(c, line, col, hint, "not YAML: "+m[2])
}

// blockErrorLine finds the line of an error for which the parser names the line
// where the block begins: the first with which the text stops being YAML.
func (s *sourceText) blockErrorLine(line int) int {
	const worthwhile = 64 << 10 // bytes
	if len(s.data) > worthwhile {
		return line
	}
	s.line(1) // splits the lines
	n := sort.Search(len(s.lines), func(n int) bool {
		_, err := readDocument([]byte(strings.Join(s.lines[:n], "\n")))
		return err != nil && strings.Contains(err.Error(), "did not find expected")
	})
	if n == 0 || n > len(s.lines) {
		return line
	}
	return n
}

// unquotedReferences complains about each ${…} inside {…} or […] that isn't
// quoted, which YAML reads as the text $ and a map.
func (s *sourceText) unquotedReferences(c *complaints) (found bool) {
	depth, quote := 0, rune(0)
	for i := 1; i <= strings.Count(string(s.data), "\n")+1; i++ {
		line := []rune(s.line(i))
		for j := 0; j < len(line); j++ {
			r := line[j]
			switch {
			case quote == '"' && r == '\\':
				j++
			case quote != 0:
				if r == quote {
					quote = 0
				}
			case (r == '"' || r == '\'') && (j == 0 || strings.ContainsRune(" \t{[,:", line[j-1])):
				quote = r
			case r == '#' && (j == 0 || line[j-1] == ' ' || line[j-1] == '\t'):
				j = len(line)
			case r == '$' && j+1 < len(line) && line[j+1] == '{':
				end := j
				for end < len(line) && line[end] != '}' {
					end++
				}
				if depth > 0 {
					found = true
					ref := string(line[j:min(end+1, len(line))])
					s.complain(c, i, j+1, "write "+strconv.Quote(ref), "a reference inside {…} or […] needs quotes")
				}
				j = end
			case r == '{' || r == '[':
				depth++
			case (r == '}' || r == ']') && depth > 0:
				depth--
			}
		}
	}
	return found
}

// A yamlTree turns the parser's nodes into our own.
type yamlTree struct {
	src        *sourceText
	complaints *complaints
	seen       map[*yaml.Node]*yamlNode // of anchors; nil while one is being read
	count      int
	full       bool // a bound is reached: nothing more is read
	refused    bool // something is missing from the result
}

func (t *yamlTree) convert(y *yaml.Node, up *yamlNode, name string, depth int) *yamlNode {
	// A value that is missing at the end of a text stands behind the last line.
	line := min(y.Line, len(t.src.lines))
	n := &yamlNode{src: t.src, line: line, col: y.Column, up: up, name: name, size: 1}
	if t.full {
		return n
	}
	if t.count++; t.count > maxYAMLNodes {
		t.refuse(n, "", "the file holds more than "+strconv.Itoa(maxYAMLNodes)+" values")
		t.full = true
		return n
	}
	if depth > maxYAMLDepth {
		t.refuse(n, "", "values are nested more than "+strconv.Itoa(maxYAMLDepth)+" deep")
		t.full = true
		return n
	}
	if y.Kind == yaml.AliasNode {
		target, ok := t.seen[y.Alias]
		switch {
		case !ok:
			t.refuse(n, "", "the alias *"+y.Value+" stands before its anchor")
			return n
		case target == nil:
			t.refuse(n, "", "the alias *"+y.Value+" contains itself")
			return n
		}
		return target
	}
	if y.Anchor != "" {
		t.seen[y] = nil
		defer func() { t.seen[y] = n }()
	}
	if y.Style&yaml.TaggedStyle != 0 {
		t.refuse(n, "leave the tag out; quotes make a text", "the tag "+y.Tag+" isn't plain data")
		return n
	}
	switch y.Kind {
	case yaml.ScalarNode:
		if len(y.Value) > maxYAMLScalar {
			t.refuse(n, "", "a text of "+strconv.Itoa(len(y.Value))+" bytes, more than "+strconv.Itoa(maxYAMLScalar))
			return n
		}
		n.text = y.Value
		if y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			n.kind, n.quoted = yamlText, true
		} else {
			n.classify()
		}
	case yaml.SequenceNode:
		n.kind = yamlList
		for i, e := range y.Content {
			v := t.convert(e, n, "["+strconv.Itoa(i)+"]", depth+1)
			n.vals = append(n.vals, v)
			n.size = t.grow(n, v)
		}
	case yaml.MappingNode:
		n.kind = yamlMap
		t.mapping(n, y, depth)
	}
	return n
}

func (t *yamlTree) mapping(n *yamlNode, y *yaml.Node, depth int) {
	first := make(map[string]*yamlNode, len(y.Content)/2)
	for i := 0; i+1 < len(y.Content); i += 2 {
		ky := y.Content[i]
		k := &yamlNode{kind: yamlText, text: ky.Value, src: t.src, line: ky.Line, col: ky.Column, up: n.up, name: n.name}
		switch {
		case ky.Tag == "!!merge" && ky.Kind == yaml.ScalarNode:
			t.refuse(k, "write the keys out, or share stanzas with extends", "merge keys (<<) aren't plain data")
			continue
		case ky.Kind != yaml.ScalarNode:
			t.refuse(k, "", "a key that isn't a plain text")
			continue
		case ky.Style&yaml.TaggedStyle != 0:
			t.refuse(k, "leave the tag out; quotes make a text", "the tag "+ky.Tag+" isn't plain data")
			continue
		case len(ky.Value) > 1000:
			t.refuse(k, "", "a key of "+strconv.Itoa(len(ky.Value))+" bytes")
			continue
		}
		if ky.Anchor != "" {
			t.seen[ky] = k
		}
		if dup := first[k.text]; dup != nil {
			t.complaints.at(k, "", "the key "+strconv.Quote(k.text)+" stands here again; the first is on line "+strconv.Itoa(dup.line))
			continue
		}
		first[k.text] = k
		v := t.convert(y.Content[i+1], n, k.text, depth+1)
		n.keys, n.vals = append(n.keys, k), append(n.vals, v)
		n.size = t.grow(n, v)
	}
}

// grow returns the size of n with v in it, and complains when aliases have blown
// it up.
func (t *yamlTree) grow(n, v *yamlNode) int {
	size := n.size + v.size
	if size > maxYAMLNodes && !t.full {
		t.full = true
		t.refuse(v, "", "aliases expand to more than "+strconv.Itoa(maxYAMLNodes)+" values")
	}
	return min(size, maxYAMLNodes+1)
}

func (t *yamlTree) refuse(n *yamlNode, hint, msg string) {
	t.refused = true
	t.complaints.at(n, hint, msg)
}
