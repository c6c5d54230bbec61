package registry

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A node is a piece of JSON schema. Maps are written with sorted keys.
type node = map[string]any

// language is the schema of the experiment language, for whatever stages there are.
//
//go:embed language.json
var language []byte

// Schema returns the JSON schema (draft 2020-12) of the experiment language, for completion and tooltips
// in editors. It's looser than check where a schema can't follow: what a reference stands for, how ports
// connect.
func (s *Set) Schema() []byte {
	var root node
	if err := json.Unmarshal(language, &root); err != nil {
		panic(err) // it's a part of the program
	}
	defs := root["$defs"].(node)
	add := func(name, key string, n node) {
		def := defs[name].(node)
		def[key] = append(def[key].([]any), n)
	}
	for _, st := range s.Family("") {
		with, ports := node{}, node{}
		for _, p := range parameters(st) {
			n := node{"anyOf": []node{p.schema(), ref("reference")}} // of them may be a reference
			n["default"], n["description"] = p.standard(), p.Doc
			with[p.Name] = n
		}
		for _, p := range st.Inputs {
			edge := ref("edge")
			edge["description"] = strings.TrimSpace(p.Wire().Name + ": " + inputDoc(p))
			ports[p.Name] = edge
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
		panic(err) // there is nothing in root that JSON can't hold
	}
	return b.Bytes()
}

func ref(name string) node {
	return node{"$ref": "#/$defs/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)}
}

// object has the given properties alone.
func object(properties node) node {
	return node{"type": "object", "additionalProperties": false, "properties": properties}
}

// using ties properties to the name of a stage.
func using(st *stages.Stage, properties node) node {
	named := node{"properties": node{"uses": node{"const": st.Name}}, "required": []string{"uses"}}
	return node{"if": named, "then": node{"properties": properties}}
}

// schema describes what may stand for the parameter.
func (p parameter) schema() node {
	k, list := p.element()
	n := node{"type": kinds[k].schema}
	switch {
	case len(p.Choices) > 0:
		n = node{"enum": p.Choices}
	case p.IsText():
		return node{"type": []string{"string", "number", "boolean", "array"}}
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

// standard is the parameter's default as JSON has it.
func (p parameter) standard() any {
	if p.Type.Kind() == reflect.Slice && p.Value.IsNil() {
		return []string{}
	}
	return p.Value.Interface()
}
