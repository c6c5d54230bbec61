package plan

import (
	"encoding"
	"math"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A paramField is a parameter with its parsed tags, ready for decoding.
type paramField struct {
	stages.Field
	list     bool // a list of values, or else one value
	text     bool // values are parsed by their own type
	min, max float64
	standard reflect.Value // the default
}

// A paramType describes the parameters of one stage.
type paramType struct {
	fields []paramField
	byName map[string]*paramField
}

// paramTypes caches the types while an experiment is loaded.
type paramTypes map[*stages.Stage]*paramType

func (t paramTypes) of(s *stages.Stage) *paramType {
	if pt := t[s]; pt != nil {
		return pt
	}
	params := s.NewParams()
	pt := &paramType{byName: map[string]*paramField{}}
	for _, f := range stages.Fields(params) {
		p := paramField{Field: f, min: math.Inf(-1), max: math.Inf(1), text: f.IsText()}
		p.standard = reflect.ValueOf(params).Elem().FieldByIndex(f.Index)
		if x, err := strconv.ParseFloat(f.Min, 64); err == nil {
			p.min = x
		}
		if x, err := strconv.ParseFloat(f.Max, 64); err == nil {
			p.max = x
		}
		if !p.text && f.Type.Kind() == reflect.Slice {
			p.list, p.text = true, f.Type.Elem().Implements(textMarshaler)
		}
		pt.fields = append(pt.fields, p)
	}
	for i := range pt.fields {
		pt.byName[pt.fields[i].Name] = &pt.fields[i]
	}
	t[s] = pt
	return pt
}

var textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()

func (pt *paramType) names() (names []string) {
	for i := range pt.fields {
		names = append(names, pt.fields[i].Name)
	}
	return names
}

// A decoder stores the value of a parameter in a struct of parameters. The value may be written at an axis;
// use is the reference to it, in the cell at.
type decoder struct {
	*loader
	*paramField
	use *paramValue
	at  combination
}

// decode stores n, and returns false, with a diagnostic, if it can't.
func (d *decoder) decode(params reflect.Value, n *yamlNode) bool {
	dst := params.FieldByIndex(d.Index)
	if !d.list {
		return d.decodeOne(dst, n)
	}
	if n.kind != yamlList {
		hint := ""
		if n.scalar() && n.kind != yamlNull {
			hint = "write [" + n.text + "]"
		}
		return d.refuse(n, hint, "%v is not a list", n)
	}
	list := reflect.MakeSlice(d.Type, len(n.vals), len(n.vals))
	ok := true
	for i, e := range n.vals {
		ok = d.decodeOne(list.Index(i), e) && ok
	}
	dst.Set(list)
	return ok
}

func (d *decoder) decodeOne(dst reflect.Value, n *yamlNode) bool {
	if n.kind == yamlNull {
		return d.refuse(n, "", "%v can't be the value of %s", n, d.Name)
	}
	if d.text {
		text, ok := n.plainText()
		if !ok {
			return d.refuse(n, "", "%v is neither a single value nor a list or mapping of these", n)
		}
		if err := dst.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
			return d.refuse(n, "", "%v", err)
		}
		return true
	}
	switch dst.Kind() {
	case reflect.Bool:
		if n.kind != yamlBool {
			return d.refuse(n, "", "%v is not true or false", n)
		}
		dst.SetBool(n.text[0] == 't' || n.text[0] == 'T')
	case reflect.Int:
		switch {
		case n.kind == yamlFloat:
			return d.refuse(n, "", "%v is not a whole number", n)
		case n.kind == yamlInt && !n.fits:
			return d.refuse(n, "", "%v is too large", n)
		case !d.inRange(n):
			return false
		}
		dst.SetInt(n.int)
	case reflect.Float64:
		if (n.kind == yamlInt || n.kind == yamlFloat) && (math.IsNaN(n.num) || math.IsInf(n.num, 0)) {
			return d.refuse(n, "", "%v is not a finite number", n)
		}
		if !d.inRange(n) {
			return false
		}
		dst.SetFloat(n.num)
	default:
		return d.decodeString(dst, n)
	}
	return true
}

// plainText returns the text for a type that parses texts itself: a scalar as written, a list of scalars as
// [a, b], or a mapping to scalars as {a: b, c: d}.
func (n *yamlNode) plainText() (text string, ok bool) {
	if n.kind != yamlList && n.kind != yamlMap {
		return n.text, n.scalar()
	}
	parts := make([]string, len(n.vals))
	for i, v := range n.vals {
		if parts[i] = v.text; !v.scalar() {
			return "", false
		}
		if n.kind == yamlMap {
			parts[i] = n.keys[i].text + ": " + v.text
		}
	}
	text = strings.Join(parts, ", ")
	if n.kind == yamlMap {
		return "{" + text + "}", true
	}
	return "[" + text + "]", true
}

func (d *decoder) decodeString(dst reflect.Value, n *yamlNode) bool {
	text := n.text
	switch {
	case !n.scalar():
		return d.refuse(n, "", "%v is not a string", n)
	case n.kind == yamlBool:
		return d.refuse(n, "quotes make it a string: "+strconv.Quote(text), "%v is not a string", n)
	case d.Choices != nil:
		value, ok := d.Stored(text)
		if !ok {
			return d.refuse(n, didYouMean(text,
				"one of", d.Choices), "%v is none of %s", n, strings.Join(d.Choices, ", "))
		}
		text = value
	case d.File && isAddress(text) && d.o.Remote != nil:
		file, err := d.o.Remote(text)
		if err != nil {
			return d.refuse(n, "", "%v", err)
		}
		d.noteRemote(n, file)
		text = file
	case d.File && text != "":
		text = resolvePath(n.src, text)
	}
	dst.SetString(text)
	return true
}

// resolvePath makes a path relative to the folder of its text.
func resolvePath(src *sourceText, text string) string {
	path := filepath.Clean(filepath.FromSlash(text))
	if !filepath.IsAbs(path) && src.dir != "" {
		path = filepath.Join(src.dir, path)
	}
	return path
}

// inRange returns whether n is a number within the parameter's bounds.
func (d *decoder) inRange(n *yamlNode) bool {
	switch {
	case n.kind != yamlInt && n.kind != yamlFloat:
		hint := ""
		if plain := (yamlNode{text: n.text}); n.quoted {
			if plain.classify(); plain.kind == yamlInt || plain.kind == yamlFloat {
				hint = "a number has no quotes, and a reference to one no text around it"
			}
		}
		return d.refuse(n, hint, "%v is not a number", n)
	case n.num >= d.min && n.num <= d.max:
		return true
	case d.Min != "" && d.Max != "":
		return d.refuse(n, "", "%v is not between %s and %s", n, d.Min, d.Max)
	case n.num < d.min:
		return d.refuse(n, "", "%v is less than %s", n, d.Min)
	}
	return d.refuse(n, "", "%v is more than %s", n, d.Max)
}

// refuse reports an error of a value, and returns false. An error of a value at an axis is reported there,
// with the reference to it.
func (d *decoder) refuse(n *yamlNode, hint, format string, args ...any) bool {
	switch use := d.use.node; {
	case use == n || d.use.plain():
	case use.line != n.line || use.src != n.src:
		format, args = format+" (used by %s)", append(args, use.path())
	default:
		format, args = format+"%s", append(args, d.at.where(d.use.axes()))
	}
	d.report(n, hint, format, args...)
	return false
}
