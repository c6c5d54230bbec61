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

// Bounds of the data of an experiment file: a hostile file can't cost more than a moment.
const (
	maxYAMLNodes  = 200_000 // with aliases expanded
	maxYAMLDepth  = 40
	maxYAMLScalar = 64 << 10 // bytes
	maxYAMLKey    = 1000     // bytes
)

// parseYAML reads s, which holds one document. It returns nil, with a diagnostic, if s isn't YAML or isn't
// plain data.
func parseYAML(s *sourceText, ds *diagnostics) *yamlNode {
	if !s.checkText(ds) {
		return nil
	}
	y, err := readDocument(s.data)
	if err != nil {
		s.syntaxError(ds, err)
		return nil
	}
	if y == nil || y.Kind == yaml.ScalarNode && y.Value == "" {
		ds.report(s.at(1, 1), "", "the file is empty")
		return nil
	}
	t := yamlTree{src: s, diagnostics: ds, anchors: map[*yaml.Node]*yamlNode{}}
	n := t.convert(y, nil, "", 0)
	if t.refused {
		return nil
	}
	return n
}

var errSecondDocument = errors.New("a second document")

// readDocument returns the value of the only document, nil if there is none.
func readDocument(data []byte) (y *yaml.Node, err error) {
	// The parser recovers from bad input, but inputs have been found that make it panic.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("unreadable YAML (%v)", r)
		}
	}()
	var docs [2]yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(data))
	for i := range docs {
		if err := d.Decode(&docs[i]); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
	}
	switch {
	case !docs[1].IsZero():
		return nil, errSecondDocument
	case len(docs[0].Content) == 0:
		return nil, nil
	}
	return docs[0].Content[0], nil
}

var yamlErrorLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?(.*)$`)

// syntaxError reports why a text isn't one YAML document.
func (s *sourceText) syntaxError(ds *diagnostics, err error) {
	lines := s.split()
	if errors.Is(err, errSecondDocument) {
		at := len(lines) - 1
		for ; at > 0 && (s.flag || !strings.HasPrefix(lines[at], "---")); at-- {
		}
		ds.report(s.at(at+1, 1),
			"one experiment a file; share stanzas with extends", "a second document begins here")
		return
	}
	if s.unquotedReferences(ds) {
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
		hint = "quote a string with a colon and a space in it, or look at the indentation"
	}
	line = max(1, min(line, len(lines)))
	text := s.line(line)
	col := 1 + len(text) - len(strings.TrimLeft(text, " \t"))
	ds.report(s.at(line, col), hint, "not YAML: %s", m[2])
}

// blockErrorLine finds the line of an error for which the parser names the line where the block begins: the
// first line with which the text stops being YAML.
func (s *sourceText) blockErrorLine(line int) int {
	const worthwhile = 64 << 10 // bytes
	if len(s.data) > worthwhile {
		return line
	}
	lines := s.split()
	return sort.Search(len(lines), func(n int) bool {
		_, err := readDocument([]byte(strings.Join(lines[:n], "\n")))
		return err != nil && strings.Contains(err.Error(), "did not find expected")
	})
}

// flowToken matches references and brackets, and texts that may contain these: quoted strings, comments and
// words.
var flowToken = regexp.MustCompile(`"(?:\\.|[^"\\])*"|'[^']*'|#.*|\$\{[^}\n]*\}?|[][{}]|[^][\s,:${}]+`)

// unquotedReferences reports each ${…} inside {…} or […] that isn't quoted, which YAML reads as the text $
// and a map.
func (s *sourceText) unquotedReferences(ds *diagnostics) (found bool) {
	depth := 0
	for _, at := range flowToken.FindAllIndex(s.data, -1) {
		switch token := string(s.data[at[0]:at[1]]); {
		case token == "{" || token == "[":
			depth++
		case token == "}" || token == "]":
			depth = max(depth-1, 0)
		case strings.HasPrefix(token, "${") && depth > 0 && len(ds.all) < maxDiags:
			found = true
			hint := "write " + strconv.Quote(token)
			ds.report(s.offset(at[0]), hint, "a reference inside {…} or […] needs quotes")
		}
	}
	return found
}

// A yamlTree turns the parser's nodes into yamlNodes.
type yamlTree struct {
	*diagnostics
	src     *sourceText
	anchors map[*yaml.Node]*yamlNode // nil while the anchor's value is read
	count   int
	full    bool // a bound is reached: nothing more is read
	refused bool // the result is incomplete
}

// refuse reports why n isn't part of the result.
func (t *yamlTree) refuse(n *yamlNode, hint, format string, args ...any) {
	t.refused = true
	t.report(n, hint, format, args...)
}

func (t *yamlTree) convert(y *yaml.Node, up *yamlNode, name string, depth int) *yamlNode {
	// The parser places a missing value at the end of a text after the last line.
	line := min(y.Line, len(t.src.split()))
	n := &yamlNode{size: 1, place: place{t.src, line, y.Column, up, name}}
	if t.count++; t.full {
		return n
	}
	if y.Anchor != "" {
		t.anchors[y] = nil
		defer func() { t.anchors[y] = n }()
	}
	switch target, anchored := t.anchors[y.Alias]; {
	case t.count > maxYAMLNodes:
		t.full = true
		t.refuse(n, "", "the file holds more than %d values", maxYAMLNodes)
	case depth > maxYAMLDepth:
		t.full = true
		t.refuse(n, "", "values are nested more than %d deep", maxYAMLDepth)
	case y.Kind == yaml.AliasNode && !anchored:
		t.refuse(n, "", "the alias *%s precedes its anchor", y.Value)
	case y.Kind == yaml.AliasNode && target == nil:
		t.refuse(n, "", "the alias *%s contains itself", y.Value)
	case y.Kind == yaml.AliasNode:
		return target
	case y.Style&yaml.TaggedStyle != 0:
		t.refuse(n, noTags, "the tag %s isn't plain data", y.Tag)
	default:
		t.fill(n, y, depth)
	}
	return n
}

const noTags = "remove the tag; quotes make a string"

// fill gives n the kind and the content of y.
func (t *yamlTree) fill(n *yamlNode, y *yaml.Node, depth int) {
	switch y.Kind {
	case yaml.ScalarNode:
		if len(y.Value) > maxYAMLScalar {
			t.refuse(n, "", "a string of %d bytes, more than %d", len(y.Value), maxYAMLScalar)
			return
		}
		n.text = y.Value
		n.size += len(y.Value) / 100 // so that aliases of long texts are bounded too
		if y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			n.kind, n.quoted = yamlText, true
		} else {
			n.classify()
		}
	case yaml.SequenceNode:
		n.kind = yamlList
		for i, e := range y.Content {
			t.add(n, t.convert(e, n, "["+strconv.Itoa(i)+"]", depth+1))
		}
	case yaml.MappingNode:
		n.kind = yamlMap
		first := make(map[string]*yamlNode, len(y.Content)/2)
		for i := 0; i+1 < len(y.Content); i += 2 {
			k := t.key(n, y.Content[i])
			if k == nil {
				continue
			}
			if dup := first[k.text]; dup != nil {
				t.report(k, "", "duplicate key %q; the first is on line %d", k.text, dup.line)
				continue
			}
			first[k.text] = k
			n.keys = append(n.keys, k)
			t.add(n, t.convert(y.Content[i+1], n, k.text, depth+1))
		}
	}
}

// key returns the node of a map's key, nil if y can't be one.
func (t *yamlTree) key(n *yamlNode, y *yaml.Node) *yamlNode {
	k := &yamlNode{kind: yamlText, text: y.Value, place: place{t.src, y.Line, y.Column, n.up, n.name}}
	switch {
	case y.Tag == "!!merge" && y.Kind == yaml.ScalarNode:
		t.refuse(k, "write the keys out, or share stanzas with extends", "merge keys (<<) aren't plain data")
	case y.Kind != yaml.ScalarNode:
		t.refuse(k, "", "a key that isn't a plain string")
	case y.Style&yaml.TaggedStyle != 0:
		t.refuse(k, noTags, "the tag %s isn't plain data", y.Tag)
	case len(y.Value) > maxYAMLKey:
		t.refuse(k, "", "a key of %d bytes", len(y.Value))
	default:
		if y.Anchor != "" {
			t.anchors[y] = k
		}
		return k
	}
	return nil
}

// add appends a value to n, unless aliases have made n too large.
func (t *yamlTree) add(n, v *yamlNode) {
	n.vals = append(n.vals, v)
	if n.size += v.size; n.size > maxYAMLNodes && !t.full {
		t.full = true
		t.refuse(v, "", "aliases expand to more than %d values", maxYAMLNodes)
	}
	n.size = min(n.size, maxYAMLNodes+1)
}
