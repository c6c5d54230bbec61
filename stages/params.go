package stages

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"
)

// A Field describes one parameter, read from a struct field such as
//
//	Steps int `yaml:"steps" doc:"how many steps" min:"1" max:"1000"`
//
// Tags: yaml, its name in an experiment file (required); doc, one line; choices:"a|b", the only texts
// allowed; min and max, the closed range of a number; file:"read", a path, taken relative to the experiment
// file and never part of a key (the digest of what it names is); key:"-", a parameter that only steers which
// items there are, and so isn't part of a key either; axis:"scores", the name of an axis, or a list of them,
// that over collapses on the input scores. An axis left empty is the only collapsed one; with
// axis:"maps,optional" there may be none.
//
// Types: bool, int, float64, string, slices of these, and types that implement encoding.TextMarshaler and, by
// pointer, encoding.TextUnmarshaler (written as one plain scalar in YAML, or as a list of scalars, which they
// read as "[a, b]").
type Field struct {
	Name    string
	Doc     string
	Type    reflect.Type
	Choices []string
	Min     string
	Max     string
	File    bool
	Keyed   bool
	Axis    string // the input whose collapsed axes it names, or ""
	NoAxis  bool   // that input may have none
	Index   []int  // for reflect.Value.FieldByIndex
}

var textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()

// IsText reports whether the parameter is written as one scalar that its type itself reads.
func (f Field) IsText() bool { return f.Type.Implements(textMarshaler) }

// Fields describes the parameters in the struct that params is or points to, in the order of their
// declaration. Embedded structs are part of it. It panics on a malformed declaration, which is a bug in this
// program.
func Fields(params any) []Field {
	t := reflect.TypeOf(params)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return fields(t, nil)
}

func fields(t reflect.Type, prefix []int) []Field {
	var out []Field
	for i := range t.NumField() {
		sf := t.Field(i)
		index := append(append([]int(nil), prefix...), i)
		if sf.Anonymous {
			out = append(out, fields(sf.Type, index)...)
			continue
		}
		f := Field{
			Name: sf.Tag.Get("yaml"), Doc: sf.Tag.Get("doc"), Type: sf.Type,
			Min: sf.Tag.Get("min"), Max: sf.Tag.Get("max"),
			File:  sf.Tag.Get("file") != "",
			Keyed: sf.Tag.Get("file") == "" && sf.Tag.Get("key") != "-",
			Index: index,
		}
		var option string
		f.Axis, option, _ = strings.Cut(sf.Tag.Get("axis"), ",")
		f.NoAxis = option == "optional"
		if c := sf.Tag.Get("choices"); c != "" {
			f.Choices = strings.Split(c, "|")
		}
		if f.Name == "" || f.Doc == "" {
			panic(fmt.Sprintf("parameter %s.%s has no yaml or no doc tag", t, sf.Name))
		}
		if f.Axis != "" && sf.Type != reflect.TypeFor[string]() && sf.Type != reflect.TypeFor[[]string]() {
			panic(fmt.Sprintf("parameter %s.%s names an axis and has the type %s", t, sf.Name, sf.Type))
		}
		if !supported(sf.Type) {
			panic(fmt.Sprintf("parameter %s.%s has the unsupported type %s", t, sf.Name, sf.Type))
		}
		out = append(out, f)
	}
	return out
}

func supported(t reflect.Type) bool {
	if t.Implements(textMarshaler) {
		return true
	}
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Float64, reflect.String:
		return true
	case reflect.Slice:
		return t.Elem().Kind() != reflect.Slice && supported(t.Elem())
	}
	return false
}
