package registry

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A node is a piece of JSON schema. Maps are written with sorted keys.
type node = map[string]any

// Schema returns the JSON schema (draft 2020-12) of the experiment language, for
// completion and tooltips in editors. It's looser than check where a schema can't
// follow: what a reference stands for, how ports connect.
func (s *Set) Schema() []byte {
	defs := node{
		"id":        node{"type": "string", "pattern": idPattern},
		"reference": node{"type": "string", "pattern": `\$\{[^}]+\}`},
		"ids":       node{"anyOf": []any{ref("scalar"), node{"type": "array", "items": ref("scalar")}}},
		"scalar":    node{"type": []string{"string", "number", "boolean"}},
		"line": node{
			"type": "object", "propertyNames": ref("id"), "additionalProperties": ref("ids"),
			"description": "a set of cells: an id or a list of ids for each axis",
		},
		"edge": node{
			"anyOf": []any{
				node{"type": "string"},
				node{"type": "object", "minProperties": 1, "additionalProperties": node{
					"type": "object", "minProperties": 1, "additionalProperties": node{"type": "string"},
				}},
			},
			"description": "stage or stage.port; {axis: {id: edge, …}} stacks edges along one more axis",
		},
		"uses":  s.uses(),
		"axis":  s.axis(),
		"stage": s.stage(),
		"with":  node{"type": "object"},
	}
	for i := range s.stages {
		defs["with:"+s.stages[i].Name] = with(&s.stages[i])
	}
	root := node{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"title":                "runexp experiment",
		"type":                 "object",
		"additionalProperties": false,
		"properties": node{
			"name":    node{"$ref": "#/$defs/id", "description": "the name of the review folder, artifacts/<name>"},
			"title":   node{"type": "string", "description": "the question, as the report's heading"},
			"seed":    node{"type": "integer", "minimum": 0, "description": "what all randomness is made from"},
			"extends": node{"type": "string", "description": "a file whose maps are merged with this one's; lists are replaced"},
			"axes": node{
				"type": "object", "propertyNames": ref("id"), "additionalProperties": ref("axis"),
				"description": "named sets of alternatives",
			},
			"stages": node{
				"type": "object", "propertyNames": ref("id"), "additionalProperties": ref("stage"),
				"description": "the steps of the experiment, in any order",
			},
			"publish": node{
				"type": "array", "items": ref("id"),
				"description": "the stages whose outputs go to the review folder",
			},
		},
		"$defs": defs,
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

const idPattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$"

func ref(name string) node {
	return node{"$ref": "#/$defs/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)}
}

func (s *Set) uses() node {
	names := make([]any, 0, len(s.stages)+1)
	for i := range s.stages {
		names = append(names, node{"const": s.stages[i].Name, "description": s.stages[i].Doc})
	}
	return node{"anyOf": append(names, ref("reference")), "description": "which implementation does the work"}
}

// axis allows a list of ids, or ids with values of which those with uses are
// choices.
func (s *Set) axis() node {
	choice := node{
		"type":       "object",
		"properties": node{"uses": ref("uses"), "with": ref("with")},
		"allOf":      s.byUses(func(*stages.Stage) node { return nil }),
	}
	return node{"anyOf": []any{
		node{"type": "array", "items": ref("scalar")},
		node{"type": "object", "propertyNames": ref("id"), "additionalProperties": node{
			"anyOf": []any{choice, node{"not": node{"type": "object"}}},
		}},
	}}
}

func (s *Set) stage() node {
	return node{
		"type":                 "object",
		"additionalProperties": false,
		"properties": node{
			"uses":   ref("uses"),
			"matrix": node{"type": "array", "items": ref("id"), "description": "axes that this stage adds to those of its inputs"},
			"in":     node{"type": "object", "additionalProperties": ref("edge"), "description": "what is wired to each input port"},
			"with":   node{"$ref": "#/$defs/with", "description": "parameters"},
			"over": node{
				"anyOf":       []any{node{"const": "all"}, node{"type": "array", "items": ref("id")}},
				"description": "axes whose cells are handed over together",
			},
			"only":    node{"type": "array", "items": ref("line"), "description": "the only cells that exist"},
			"exclude": node{"type": "array", "items": ref("line"), "description": "cells that don't exist"},
			"when": node{
				"type": "array",
				"items": node{
					"type": "object", "additionalProperties": false, "required": []string{"if", "with"},
					"properties": node{"if": ref("line"), "with": ref("with")},
				},
				"description": "parameters for some of the cells",
			},
			"store": node{
				"enum":        []string{"keep", "none"},
				"description": "whether bulk output outlives the stages that read it",
			},
			"missing": node{
				"enum":        []string{"block", "drop"},
				"description": "what a failed cell among those collapsed by over does",
			},
		},
		"allOf": s.byUses(func(st *stages.Stage) node {
			ports := node{}
			for i := range st.Inputs {
				p := &st.Inputs[i]
				ports[p.Name] = node{"$ref": "#/$defs/edge", "description": strings.TrimSpace(p.Wire().Name + ": " + inputDoc(*p))}
			}
			return node{"properties": ports, "additionalProperties": false}
		}),
	}
}

// byUses ties parameters, and ports if ports gives any, to the named stage.
func (s *Set) byUses(ports func(*stages.Stage) node) []any {
	list := make([]any, 0, len(s.stages))
	for i := range s.stages {
		st := &s.stages[i]
		then := node{"with": ref("with:" + st.Name)}
		if p := ports(st); p != nil {
			then["in"] = p
		}
		list = append(list, node{
			"if":   node{"properties": node{"uses": node{"const": st.Name}}, "required": []string{"uses"}},
			"then": node{"properties": then},
		})
	}
	return list
}

// with describes the parameters of a stage. Any of them may be a reference.
func with(s *stages.Stage) node {
	properties := node{}
	for _, p := range parameters(s) {
		n := node{"anyOf": []any{shape(p), ref("reference")}, "description": p.Doc}
		if d := value(p.value); d != nil {
			n["default"] = d
		}
		properties[p.Name] = n
	}
	return node{"type": "object", "additionalProperties": false, "properties": properties}
}

func shape(p parameter) node {
	t := p.Type
	if t.Kind() == reflect.Slice && !p.IsText() {
		return node{"type": "array", "items": scalar(p, t.Elem())}
	}
	return scalar(p, t)
}

func scalar(p parameter, t reflect.Type) node {
	n := node{}
	switch {
	case len(p.Choices) > 0:
		return node{"enum": p.Choices}
	case p.IsText():
		return node{"type": []string{"string", "number", "boolean", "array"}}
	case t.Kind() == reflect.Bool:
		n["type"] = "boolean"
	case t.Kind() == reflect.Int:
		n["type"] = "integer"
	case t.Kind() == reflect.Float64:
		n["type"] = "number"
	default:
		n["type"] = "string"
	}
	for key, text := range map[string]string{"minimum": p.Min, "maximum": p.Max} {
		if x, err := strconv.ParseFloat(text, 64); err == nil {
			n[key] = x
		}
	}
	return n
}

// value returns a default as JSON can hold it, nil where it can't.
func value(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Bool, reflect.Int, reflect.String:
		if v.Type().PkgPath() == "" {
			return v.Interface()
		}
	case reflect.Float64:
		if _, err := json.Marshal(v.Float()); err == nil {
			return v.Float()
		}
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = value(v.Index(i))
		}
		return list
	}
	return plain(v)
}
