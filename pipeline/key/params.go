package key

import (
	"cmp"
	"reflect"
	"slices"
	"sync"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

// Params write parameters in their canonical form: a JSON object of the keyed parameters with defaults
// filled in, sorted by name.
type Params struct {
	fields sync.Map // *stages.Stage → []keyedField, sorted by name
}

// A keyedField is a keyed parameter and, if it was added later, its default, which isn't part of any key.
type keyedField struct {
	stages.Field
	standard string
}

func (c *Params) of(s *stages.Stage) []keyedField {
	if f, ok := c.fields.Load(s); ok {
		return f.([]keyedField)
	}
	var fields []keyedField
	params := s.NewParams()
	for _, f := range stages.Fields(params) {
		if !f.Keyed {
			continue
		}
		k := keyedField{Field: f}
		if f.Added {
			k.standard = string(plan.AppendValue(nil, reflect.ValueOf(params).Elem().FieldByIndex(f.Index)))
		}
		fields = append(fields, k)
	}
	slices.SortFunc(fields, func(a, b keyedField) int { return cmp.Compare(a.Name, b.Name) })
	c.fields.Store(s, fields)
	return fields
}

// Each calls f for the parameters of s that are part of keys, with their values in canonical form.
func (c *Params) Each(s *stages.Stage, params any, f func(name string, value []byte)) {
	v := reflect.ValueOf(params).Elem()
	var value []byte
	for _, k := range c.of(s) {
		value = plan.AppendValue(value[:0], v.FieldByIndex(k.Index))
		if !k.Added || string(value) != k.standard {
			f(k.Name, value)
		}
	}
}

// Encode appends the canonical form of params, a pointer to the parameter struct of s.
func (c *Params) Encode(b []byte, s *stages.Stage, params any) []byte {
	b = append(b, '{')
	start := len(b)
	c.Each(s, params, func(name string, value []byte) {
		if len(b) > start {
			b = append(b, ',')
		}
		b = append(plan.AppendText(b, name), ':')
		b = append(b, value...)
	})
	return append(b, '}')
}
