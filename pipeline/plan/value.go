package plan

import (
	"encoding"
	"reflect"
	"strconv"
)

// AppendValue appends the canonical form of a parameter's value, JSON, which keys digest and by which two
// values are compared.
func AppendValue(b []byte, v reflect.Value) []byte {
	if v.Type().Implements(textMarshaler) {
		text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil {
			panic(err) // a decoded value can be written
		}
		return AppendText(b, string(text))
	}
	switch v.Kind() {
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool())
	case reflect.Int:
		return strconv.AppendInt(b, v.Int(), 10)
	case reflect.Float64:
		return strconv.AppendFloat(b, v.Float(), 'g', -1, 64)
	case reflect.String:
		return AppendText(b, v.String())
	}
	b = append(b, '[')
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendValue(b, v.Index(i))
	}
	return append(b, ']')
}

// AppendText quotes s as JSON does, escaping no more than necessary.
func AppendText(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
