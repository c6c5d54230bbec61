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

// Schema returns the JSON schema (draft 2020-12) of the experiment language, for completion and tooltips
// in editors. It's looser than check where a schema can't follow: what a reference stands for, how ports
// connect.
func (s *Set) Schema() []byte {
	port := mapOf(str())
	port["minProperties"] = 1
	edge := mapOf(port)
	edge["minProperties"] = 1
	defs := node{
		"id":        node{"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$"},
		"reference": node{"type": "string", "pattern": `\$\{[^}]+\}`},
		"ids":       anyOf(ref("scalar"), listOf(ref("scalar"))),
		"scalar":    node{"type": []string{"string", "number", "boolean"}},
		"line":      about("a set of cells: an id or a list of ids for each axis", named(ref("ids"))),
		"edge": about("stage or stage.port; {axis: {id: edge, …}} stacks edges along one more axis",
			anyOf(str(), edge)),
		"uses":  s.uses(),
		"axis":  s.axis(),
		"stage": s.stage(),
		"with":  node{"type": "object"},
	}
	for _, st := range s.Family("") {
		properties := node{} // any of them may be a reference
		for _, p := range parameters(st) {
			n := about(p.Doc, anyOf(p.schema(), ref("reference")))
			n["default"] = value(p.Value)
			properties[p.Name] = n
		}
		defs["with:"+st.Name] = object(properties)
	}
	root := object(node{
		"name":    about("the name of the review folder, artifacts/<name>", ref("id")),
		"title":   about("the question, as the report's heading", str()),
		"seed":    node{"type": "integer", "minimum": 0, "description": "what all randomness is made from"},
		"extends": about("a file whose maps are merged with this one's; lists are replaced", str()),
		"axes":    about("named sets of alternatives", named(ref("axis"))),
		"stages":  about("the steps of the experiment, in any order", named(ref("stage"))),
		"publish": about("the stages whose outputs go to the review folder", listOf(ref("id"))),
	})
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"], root["$defs"] = "runexp experiment", defs
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
func constant(s string) node     { return node{"const": s} }
func str() node                  { return node{"type": "string"} }
func anyOf(nodes ...any) node    { return node{"anyOf": nodes} }
func listOf(items node) node     { return node{"type": "array", "items": items} }
func oneOf(texts ...string) node { return node{"enum": texts} }
func mapOf(values node) node     { return node{"type": "object", "additionalProperties": values} }

// named is a map from ids.
func named(values node) node {
	n := mapOf(values)
	n["propertyNames"] = ref("id")
	return n
}

// object has the given properties alone.
func object(properties node) node {
	return node{"type": "object", "additionalProperties": false, "properties": properties}
}

func about(description string, n node) node {
	n["description"] = description
	return n
}

func (s *Set) uses() node {
	var names []any
	for _, st := range s.Family("") {
		names = append(names, node{"const": st.Name, "description": st.Doc})
	}
	return about("which implementation does the work", anyOf(append(names, ref("reference"))...))
}

// axis allows a list of ids, or ids with values of which those with uses are choices.
func (s *Set) axis() node {
	choice := node{
		"type":       "object",
		"properties": node{"uses": ref("uses"), "with": ref("with")},
		"allOf":      s.byUses(func(*stages.Stage) node { return nil }),
	}
	return anyOf(listOf(ref("scalar")), named(anyOf(choice, node{"not": node{"type": "object"}})))
}

func (s *Set) stage() node {
	when := object(node{"if": ref("line"), "with": ref("with")})
	ids := listOf(ref("id"))
	when["required"] = []string{"if", "with"}
	n := object(node{
		"uses":    ref("uses"),
		"matrix":  about("axes that this stage adds to those of its inputs", listOf(ref("id"))),
		"in":      about("what is wired to each input port", mapOf(ref("edge"))),
		"with":    about("parameters", ref("with")),
		"over":    about("axes whose cells are handed over together", anyOf(constant("all"), ids)),
		"only":    about("the only cells that exist", listOf(ref("line"))),
		"exclude": about("cells that don't exist", listOf(ref("line"))),
		"when":    about("parameters for some of the cells", listOf(when)),
		"store":   about("whether bulk output outlives the stages that read it", oneOf("keep", "none")),
		"missing": about("what a failed cell among those collapsed by over does", oneOf("block", "drop")),
	})
	n["allOf"] = s.byUses(func(st *stages.Stage) node {
		ports := node{}
		for _, p := range st.Inputs {
			ports[p.Name] = about(strings.TrimSpace(p.Wire().Name+": "+inputDoc(p)), ref("edge"))
		}
		return node{"properties": ports, "additionalProperties": false}
	})
	return n
}

// byUses ties parameters, and ports if ports gives any, to the named stage.
func (s *Set) byUses(ports func(*stages.Stage) node) []any {
	var list []any
	for _, st := range s.Family("") {
		then := node{"with": ref("with:" + st.Name)}
		if p := ports(st); p != nil {
			then["in"] = p
		}
		list = append(list, node{
			"if":   node{"properties": node{"uses": constant(st.Name)}, "required": []string{"uses"}},
			"then": node{"properties": then},
		})
	}
	return list
}

// schema describes what may stand for the parameter.
func (p parameter) schema() node {
	k, list := p.element()
	n := node{"type": kinds[k].schema}
	switch {
	case len(p.Choices) > 0:
		n = oneOf(p.Choices...)
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
		return listOf(n)
	}
	return n
}

// value returns a default as JSON can hold it.
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
