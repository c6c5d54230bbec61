package registry

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A node is a piece of JSON schema. Maps are written with sorted keys.
type node = map[string]any

// language is the schema of the experiment language without the stages.
//
//go:embed language.json
var language []byte

// Schema returns the JSON schema (draft 2020-12) of the experiment language, for completion and tooltips in
// editors. It accepts more than check where a schema can't express a rule: the value of a reference, the
// connections of ports.
func (s *Set) Schema() []byte {
	var root node
	if err := json.Unmarshal(language, &root); err != nil {
		panic(err) // it is a part of the program
	}
	defs := root["$defs"].(node)
	add := func(name, key string, n node) {
		def := defs[name].(node)
		def[key] = append(def[key].([]any), n)
	}
	for _, st := range s.Family("") {
		with, ports := node{}, node{}
		for _, p := range parameters(st) {
			n := node{"anyOf": []node{p.schema(), ref("reference")}} // elements may be references
			n["default"], n["description"] = p.standard(), p.Doc
			with[p.Name] = n
		}
		for _, p := range st.Inputs {
			edge := ref("edge")
			edge["description"] = strings.TrimSpace(p.TypeText() + ": " + inputDoc(p))
			ports[p.Name] = edge
			if p.Called(stages.TextsName) {
				ports[stages.TextsName] = edge
			}
		}
		own := "with:" + st.Name
		defs[own] = object(with)
		add("uses", "anyOf", node{"const": st.Name, "description": st.Doc})
		add("choice", "allOf", using(st, node{"with": ref(own)}))
		add("stage", "allOf", using(st, node{"with": ref(own), "in": object(ports)}))
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(root); err != nil {
		panic(err) // JSON can represent everything in root
	}
	return b.Bytes()
}

func ref(name string) node {
	return node{"$ref": "#/$defs/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)}
}

// object is the schema of an object with these properties and no others.
func object(properties node) node {
	return node{"type": "object", "additionalProperties": false, "properties": properties}
}

// using applies properties if the stage has this name.
func using(st *stages.Stage, properties node) node {
	named := node{"properties": node{"uses": node{"const": st.Name}}, "required": []string{"uses"}}
	return node{"if": named, "then": node{"properties": properties}}
}

// schema describes the valid values of the parameter.
func (p parameter) schema() node {
	k, list := p.element()
	n := node{"type": kinds[k].schema}
	switch {
	case len(p.Choices) > 0:
		n = node{"enum": slices.Concat(p.Choices, p.Former())}
	case p.IsText():
		return node{"type": []string{"string", "number", "boolean", "array", "object"}}
	default:
		for key, text := range map[string]string{"minimum": p.Min, "maximum": p.Max} {
			if x, err := strconv.ParseFloat(text, 64); err == nil {
				n[key] = x
			}
		}
	}
	if list {
		return node{"type": "array", "items": n}
	}
	return n
}

// standard is the parameter's default in JSON.
func (p parameter) standard() any {
	if p.Type.Kind() == reflect.Slice && p.Value.IsNil() {
		return []string{}
	}
	if len(p.Choices) > 0 && p.Type.Kind() == reflect.String {
		return p.Written(p.Value.String())
	}
	return p.Value.Interface()
}
