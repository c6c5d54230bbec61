package registry

import (
	"encoding"
	"reflect"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A parameter is a field of a stage's parameter struct with its default.
type parameter struct {
	stages.Field
	value   reflect.Value // the default
	Default string        // as it would stand in an experiment
}

func parameters(s *stages.Stage) []parameter {
	p := s.NewParams()
	v := reflect.ValueOf(p).Elem()
	var list []parameter
	for _, f := range stages.Fields(p) {
		d := v.FieldByIndex(f.Index)
		list = append(list, parameter{f, d, plain(d)})
	}
	return list
}

// kind says what may stand for the parameter: "int, 1 … 1000", "paper | official".
func (p parameter) kind() string {
	if len(p.Choices) > 0 {
		if p.Type.Kind() == reflect.Slice {
			return "list of " + strings.Join(p.Choices, " | ")
		}
		return strings.Join(p.Choices, " | ")
	}
	return p.typeName() + p.span()
}

func (p parameter) typeName() string {
	switch {
	case p.File && p.Type.Kind() == reflect.Slice:
		return "list of paths"
	case p.File:
		return "path"
	case p.Axis != "" && p.Type.Kind() == reflect.Slice:
		return "list of axes"
	case p.Axis != "":
		return "axis"
	case p.IsText():
		return "text"
	case p.Type.Kind() == reflect.Slice:
		return "list of " + typeNames[p.Type.Elem().Kind()]
	}
	return typeNames[p.Type.Kind()]
}

var typeNames = map[reflect.Kind]string{
	reflect.Bool: "true | false", reflect.Int: "int", reflect.Float64: "number", reflect.String: "text",
}

func (p parameter) span() string {
	switch {
	case p.Min != "" && p.Max != "":
		return ", " + p.Min + " … " + p.Max
	case p.Min != "":
		return ", ≥ " + p.Min
	case p.Max != "":
		return ", ≤ " + p.Max
	}
	return ""
}

// plain writes a default as it would stand in an experiment.
func plain(v reflect.Value) string {
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		b, err := m.MarshalText()
		if err != nil {
			return ""
		}
		return string(b)
	}
	switch v.Kind() {
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Int:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	case reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = plain(v.Index(i))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	if v.String() == "" {
		return `""`
	}
	return v.String()
}
