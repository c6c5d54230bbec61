package model

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A literal is a value in metadata: a pair list, a list, a text, a number or a truth value.
type literal interface{}

// pairs are the entries of a dictionary, in their order.
type pairs []pair

type pair struct {
	Key   string
	Value literal
}

// readLiteral reads JSON or Python's way of writing dictionaries, lists, tuples, texts, numbers, truth values
// and None; false for anything else.
func readLiteral(text string) (literal, bool) {
	r := literalReader{rest: text, depth: 32}
	v, ok := r.value()
	r.space()
	return v, ok && r.rest == ""
}

type literalReader struct {
	rest  string
	depth int // how many more brackets may be open
}

func (r *literalReader) space() { r.rest = strings.TrimLeft(r.rest, " \t\r\n") }

// take reads one of the characters, if it is next.
func (r *literalReader) take(c byte) bool {
	r.space()
	if r.rest == "" || r.rest[0] != c {
		return false
	}
	r.rest = r.rest[1:]
	return true
}

func (r *literalReader) value() (literal, bool) {
	r.space()
	if r.rest == "" {
		return nil, false
	}
	switch c := r.rest[0]; c {
	case '{':
		return r.dictionary()
	case '[':
		return r.list(']')
	case '(':
		return r.list(')')
	case '"', '\'':
		return r.text()
	}
	end := strings.IndexAny(r.rest, " \t\r\n,:]})")
	if end < 0 {
		end = len(r.rest)
	}
	word := r.rest[:end]
	r.rest = r.rest[end:]
	switch word {
	case "true", "True":
		return true, true
	case "false", "False":
		return false, true
	case "null", "None":
		return nil, true
	}
	number, err := strconv.ParseFloat(word, 64)
	return number, err == nil
}

func (r *literalReader) list(closing byte) (literal, bool) {
	if r.depth--; r.depth < 0 {
		return nil, false
	}
	defer func() { r.depth++ }()
	r.rest = r.rest[1:]
	out := []literal{}
	for !r.take(closing) {
		v, ok := r.value()
		if !ok {
			return nil, false
		}
		out = append(out, v)
		if !r.take(',') && (r.rest == "" || r.rest[0] != closing) {
			return nil, false
		}
	}
	return out, true
}

func (r *literalReader) dictionary() (literal, bool) {
	if r.depth--; r.depth < 0 {
		return nil, false
	}
	defer func() { r.depth++ }()
	r.rest = r.rest[1:]
	out := pairs{}
	for !r.take('}') {
		k, ok := r.value()
		if !ok || !r.take(':') {
			return nil, false
		}
		v, ok := r.value()
		if !ok {
			return nil, false
		}
		out = append(out, pair{literalText(k), v})
		if !r.take(',') && (r.rest == "" || r.rest[0] != '}') {
			return nil, false
		}
	}
	return out, true
}

// text reads a quoted text. Escapes are those that JSON and Python share, \' and \xhh.
func (r *literalReader) text() (literal, bool) {
	quote := r.rest[0]
	var b strings.Builder
	for i := 1; i < len(r.rest); i++ {
		switch c := r.rest[i]; c {
		case quote:
			r.rest = r.rest[i+1:]
			return b.String(), true
		case '\\':
			s, n := unescape(r.rest[i:])
			if n == 0 {
				return nil, false
			}
			b.WriteString(s)
			i += n - 1
		default:
			b.WriteByte(c)
		}
	}
	return nil, false
}

// unescape returns the character of the escape at the beginning of s, and its length; 0 for none.
func unescape(s string) (string, int) {
	if len(s) < 2 {
		return "", 0
	}
	switch s[1] {
	case '"', '\'', '/':
		return s[1:2], 2
	case 'u':
		n := 6
		if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' && strings.HasPrefix(strings.ToLower(s[2:]), "d") {
			n = 12 // a pair of surrogates
		}
		var out string
		if len(s) < n || json.Unmarshal([]byte(`"`+s[:n]+`"`), &out) != nil {
			return "", 0
		}
		return out, n
	}
	v, _, rest, err := strconv.UnquoteChar(s, 0)
	if err != nil {
		return "", 0
	}
	return string(utf8.AppendRune(nil, v)), len(s) - len(rest)
}

// literalText returns a text or a number as text; "" for the others.
func literalText(v literal) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// literalNumbers returns the numbers of a list, or a number; nil for the others.
func literalNumbers(v literal) []float64 {
	switch v := v.(type) {
	case float64:
		return []float64{v}
	case []literal:
		var out []float64
		for _, e := range v {
			n := literalNumbers(e) // nested as in [[[0.5]], [[0.5]], [[0.5]]]
			if len(n) != 1 {
				return nil
			}
			out = append(out, n[0])
		}
		return out
	}
	return nil
}
