package plan

import (
	"encoding"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A paramKind says how a parameter is read.
type paramKind int8

const (
	paramBool paramKind = iota
	paramInt
	paramFloat
	paramString
	paramText // by its own type, from text
)

// A paramField is a parameter with what its tags say, ready for decoding.
type paramField struct {
	stages.Field
	kind     paramKind // of the elements, for a list
	list     bool
	min, max float64
	standard reflect.Value // its default
}

// A paramType describes the parameters of one stage.
type paramType struct {
	fields []paramField
	byName map[string]*paramField
	axes   []*paramField // those that name axes
	files  []*paramField // those that name files or folders
}

// paramTypes remembers the types, for the time of one loading.
type paramTypes map[*stages.Stage]*paramType

func (t paramTypes) of(s *stages.Stage) *paramType {
	if pt := t[s]; pt != nil {
		return pt
	}
	params := s.NewParams()
	fields := stages.Fields(params)
	pt := &paramType{fields: make([]paramField, len(fields)), byName: make(map[string]*paramField, len(fields))}
	for i, f := range fields {
		p := paramField{Field: f, min: math.Inf(-1), max: math.Inf(1), standard: reflect.ValueOf(params).Elem().FieldByIndex(f.Index)}
		if x, err := strconv.ParseFloat(f.Min, 64); err == nil {
			p.min = x
		}
		if x, err := strconv.ParseFloat(f.Max, 64); err == nil {
			p.max = x
		}
		elem := f.Type
		if !f.IsText() && elem.Kind() == reflect.Slice {
			p.list, elem = true, elem.Elem()
		}
		p.kind = kindOf(elem)
		pt.fields[i] = p
		pt.byName[f.Name] = &pt.fields[i]
		if f.Axis != "" {
			pt.axes = append(pt.axes, &pt.fields[i])
		}
		if f.File {
			pt.files = append(pt.files, &pt.fields[i])
		}
	}
	t[s] = pt
	return pt
}

var textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()

func kindOf(t reflect.Type) paramKind {
	if t.Implements(textMarshaler) {
		return paramText
	}
	switch t.Kind() {
	case reflect.Bool:
		return paramBool
	case reflect.Int:
		return paramInt
	case reflect.Float64:
		return paramFloat
	}
	return paramString
}

func (pt *paramType) names() []string {
	var names []string
	for i := range pt.fields {
		names = append(names, pt.fields[i].Name)
	}
	return names
}

// A decoding is the place of a value that is being decoded: the value may stand
// in an axis, and use is what refers to it.
type decoding struct {
	use *paramValue
	at  combination
}

// decode stores a value in the parameter's field of the struct, and reports
// whether it could.
func (l *loader) decode(f *paramField, params reflect.Value, n *yamlNode, d decoding) bool {
	dst := params.FieldByIndex(f.Index)
	if !f.list {
		return l.decodeScalar(f, dst, n, d)
	}
	if n.kind != yamlList {
		hint := ""
		if n.scalar() && n.kind != yamlNull {
			hint = "write [" + n.text + "]"
		}
		l.mistyped(n, d, hint, " is not a list")
		return false
	}
	list := reflect.MakeSlice(f.Type, len(n.vals), len(n.vals))
	ok := true
	for i, e := range n.vals {
		ok = l.decodeScalar(f, list.Index(i), e, d) && ok
	}
	dst.Set(list)
	return ok
}

func (l *loader) decodeScalar(f *paramField, dst reflect.Value, n *yamlNode, d decoding) bool {
	if n.kind == yamlNull {
		l.mistyped(n, d, "", " can't be the value of "+f.Name)
		return false
	}
	switch f.kind {
	case paramBool:
		if n.kind != yamlBool {
			l.mistyped(n, d, "", " is not true or false")
			return false
		}
		dst.SetBool(n.text[0] == 't' || n.text[0] == 'T')
	case paramInt:
		if n.kind != yamlInt {
			if n.kind == yamlFloat {
				l.mistyped(n, d, "", " is not a whole number")
			} else {
				l.notNumber(n, d)
			}
			return false
		}
		if !n.fits {
			l.mistyped(n, d, "", " is too large")
			return false
		}
		if !l.inRange(f, n, d) {
			return false
		}
		dst.SetInt(n.int)
	case paramFloat:
		if n.kind != yamlInt && n.kind != yamlFloat {
			l.notNumber(n, d)
			return false
		}
		if math.IsNaN(n.num) || math.IsInf(n.num, 0) {
			l.mistyped(n, d, "", " is not a finite number")
			return false
		}
		if !l.inRange(f, n, d) {
			return false
		}
		dst.SetFloat(n.num)
	case paramString:
		return l.decodeString(f, dst, n, d)
	case paramText:
		text, ok := n.plainText()
		if !ok {
			l.mistyped(n, d, "", " is neither a single value nor a list of these")
			return false
		}
		if err := dst.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
			l.bad(n, d, "", err.Error())
			return false
		}
	}
	return true
}

// plainText returns what a type reads that reads texts itself: a scalar as it is written,
// or a list of scalars as [a, b].
func (n *yamlNode) plainText() (text string, ok bool) {
	if n.kind != yamlList {
		return n.text, n.scalar()
	}
	parts := make([]string, len(n.vals))
	for i, v := range n.vals {
		if !v.scalar() {
			return "", false
		}
		parts[i] = v.text
	}
	return "[" + strings.Join(parts, ", ") + "]", true
}

func (l *loader) decodeString(f *paramField, dst reflect.Value, n *yamlNode, d decoding) bool {
	if n.kind == yamlBool || !n.scalar() {
		hint := ""
		if n.scalar() {
			hint = "quotes make it a text: " + strconv.Quote(n.text)
		}
		l.mistyped(n, d, hint, " is not a text")
		return false
	}
	text := n.text
	if f.Choices != nil && !slices.Contains(f.Choices, text) {
		l.mistyped(n, d, didYouMean(text, "one of", f.Choices), " is none of "+strings.Join(f.Choices, ", "))
		return false
	}
	if f.File && text != "" {
		text = resolvePath(n.src, text)
	}
	dst.SetString(text)
	return true
}

// resolvePath makes a path relative to the folder of the text it stands in.
func resolvePath(src *sourceText, text string) string {
	path := filepath.Clean(filepath.FromSlash(text))
	if !filepath.IsAbs(path) && src.dir != "" {
		path = filepath.Join(src.dir, path)
	}
	return path
}

func (l *loader) inRange(f *paramField, n *yamlNode, d decoding) bool {
	if n.num >= f.min && n.num <= f.max {
		return true
	}
	switch {
	case n.num < f.min && f.Max != "", n.num > f.max && f.Min != "":
		l.mistyped(n, d, "", " is not between "+f.Min+" and "+f.Max)
	case n.num < f.min:
		l.mistyped(n, d, "", " is less than "+f.Min)
	default:
		l.mistyped(n, d, "", " is more than "+f.Max)
	}
	return false
}

func (l *loader) notNumber(n *yamlNode, d decoding) {
	hint := ""
	if n.kind == yamlText && n.quoted {
		c := *n
		if c.classify(); c.kind == yamlInt || c.kind == yamlFloat {
			hint = "a number stands without quotes, and a reference to one alone"
		}
	}
	l.mistyped(n, d, hint, " is not a number")
}

// mistyped complains about a value, saying which; bad says what it's told.
func (l *loader) mistyped(n *yamlNode, d decoding, hint, msg string) {
	l.bad(n, d, hint, n.String()+msg)
}

func (l *loader) bad(n *yamlNode, d decoding, hint, msg string) {
	switch use := d.use.node; {
	case use == n || d.use.plain():
	case use.line != n.line || use.src != n.src:
		msg += " (used by " + use.path() + ")"
	default:
		msg += inCell(d.at.only(d.use))
	}
	l.at(n, hint, msg)
}
