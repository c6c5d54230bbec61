package function

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	"github.com/runexp/runexp/stages"
)

// A param is a parameter of a function.
type param struct {
	Name    string
	Type    string // bool, int, float, str
	Default json.RawMessage
}

// codeName is the parameter by which a function's code is in its keys: an edit moves them, and runexp why
// names it.
const codeName = "code"

// fields are the parameters of a stage as a struct type, which the compiler of Go hasn't seen.
type fields struct {
	of   reflect.Type
	zero reflect.Value // with the defaults
	code string
}

var types = map[string]reflect.Type{"bool": reflect.TypeFor[bool](), "int": reflect.TypeFor[int](),
	"float": reflect.TypeFor[float64](), "str": reflect.TypeFor[string]()}

func newFields(params []param, code string) (*fields, error) {
	list := []reflect.StructField{field(0, codeName, "the digest of the function's code", types["str"])}
	for i, p := range params {
		if p.Name == codeName {
			return nil, fmt.Errorf("a parameter may not be called %s", codeName)
		}
		t := types[p.Type]
		if t == nil {
			return nil, fmt.Errorf("the parameter %s is of the unknown type %q", p.Name, p.Type)
		}
		list = append(list, field(i+1, p.Name, "a parameter of the function", t))
	}
	f := &fields{of: reflect.StructOf(list), code: code}
	f.zero = reflect.New(f.of).Elem()
	f.zero.Field(0).SetString(code)
	for i, p := range params {
		if err := json.Unmarshal(p.Default, f.zero.Field(i+1).Addr().Interface()); err != nil {
			return nil, fmt.Errorf("the default of %s, %s, is no %s: %w", p.Name, p.Default, p.Type, err)
		}
	}
	return f, nil
}

func field(i int, name, doc string, t reflect.Type) reflect.StructField {
	tag := fmt.Sprintf(`yaml:%s doc:%s`, strconv.Quote(name), strconv.Quote(doc))
	return reflect.StructField{Name: "P" + strconv.Itoa(i), Type: t, Tag: reflect.StructTag(tag)}
}

// fresh returns a pointer to a copy of the defaults.
func (f *fields) fresh() any {
	p := reflect.New(f.of)
	p.Elem().Set(f.zero)
	return p.Interface()
}

func (f *fields) defaults() any { return f.zero.Interface() }

// values returns the arguments by name.
func (f *fields) values(params any) map[string]any {
	v := reflect.ValueOf(params).Elem()
	values := map[string]any{}
	for i := 1; i < f.of.NumField(); i++ {
		values[f.of.Field(i).Tag.Get("yaml")] = v.Field(i).Interface()
	}
	return values
}

// check refuses another code than the function's: what isn't known to have run would stand in the key.
func (f *fields) check(params any) error {
	if reflect.ValueOf(params).Elem().Field(0).String() != f.code {
		return stages.BadField(codeName, "%s isn't to be given: it is the digest of the function's code",
			codeName)
	}
	return nil
}
