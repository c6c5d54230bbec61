package registry

import (
	"encoding/json"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// A validator follows the few keywords that Schema uses, and fails on others.
type validator struct {
	t    *testing.T
	root node
}

func (v validator) ok(schema node, x any) bool {
	for key, arg := range schema {
		if !v.keyword(schema, key, arg, x) {
			return false
		}
	}
	return true
}

func (v validator) keyword(schema node, key string, arg, x any) bool {
	object, isObject := x.(map[string]any)
	list, _ := x.([]any)
	number, isNumber := x.(float64)
	switch key {
	case "$schema", "$defs", "title", "description", "default", "then":
		return true
	case "$ref":
		return v.ok(v.resolve(arg.(string)), x)
	case "type":
		return v.isType(arg, x)
	case "const":
		return reflect.DeepEqual(arg, x)
	case "enum":
		for _, a := range arg.([]any) {
			if reflect.DeepEqual(a, x) {
				return true
			}
		}
		return false
	case "pattern":
		s, isString := x.(string)
		return !isString || regexp.MustCompile(arg.(string)).MatchString(s)
	case "minimum":
		return !isNumber || number >= arg.(float64)
	case "maximum":
		return !isNumber || number <= arg.(float64)
	case "minProperties":
		return !isObject || float64(len(object)) >= arg.(float64)
	case "maxLength":
		text, isText := x.(string)
		return !isText || float64(utf8.RuneCountInString(text)) <= arg.(float64)
	case "minLength":
		text, isText := x.(string)
		return !isText || float64(utf8.RuneCountInString(text)) >= arg.(float64)
	case "not":
		return !v.ok(arg.(node), x)
	case "if":
		then, _ := schema["then"].(node)
		return !v.ok(arg.(node), x) || v.ok(then, x)
	case "anyOf":
		for _, a := range arg.([]any) {
			if v.ok(a.(node), x) {
				return true
			}
		}
		return false
	case "allOf":
		for _, a := range arg.([]any) {
			if !v.ok(a.(node), x) {
				return false
			}
		}
		return true
	case "items":
		for _, e := range list {
			if !v.ok(arg.(node), e) {
				return false
			}
		}
		return true
	case "required":
		for _, name := range arg.([]any) {
			if _, there := object[name.(string)]; isObject && !there {
				return false
			}
		}
		return true
	case "propertyNames":
		for name := range object {
			if !v.ok(arg.(node), name) {
				return false
			}
		}
		return true
	case "properties":
		for name, sub := range arg.(node) {
			if e, there := object[name]; there && !v.ok(sub.(node), e) {
				return false
			}
		}
		return true
	case "additionalProperties":
		known, _ := schema["properties"].(node)
		for name, e := range object {
			if known[name] != nil {
				continue
			}
			if sub, ok := arg.(node); !ok && arg == false || ok && !v.ok(sub, e) {
				return false
			}
		}
		return true
	}
	v.t.Fatalf("the schema uses the keyword %q, which this test doesn't know", key)
	return false
}

func (v validator) resolve(ref string) node {
	at := v.root
	for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		part, err := url.PathUnescape(part)
		next, ok := at[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)].(node)
		if err != nil || !ok {
			v.t.Fatalf("the schema refers to %s, which isn't there", ref)
		}
		at = next
	}
	return at
}

func (v validator) isType(arg, x any) bool {
	if list, ok := arg.([]any); ok {
		for _, a := range list {
			if v.isType(a, x) {
				return true
			}
		}
		return false
	}
	switch x := x.(type) {
	case map[string]any:
		return arg == "object"
	case []any:
		return arg == "array"
	case string:
		return arg == "string"
	case bool:
		return arg == "boolean"
	case float64:
		return arg == "number" || arg == "integer" && x == math.Trunc(x)
	}
	return false
}

func accepts(t *testing.T, schema []byte, experiment string) bool {
	t.Helper()
	var root node
	if err := json.Unmarshal(schema, &root); err != nil {
		t.Fatal(err)
	}
	var x any
	if err := yaml.Unmarshal([]byte(experiment), &x); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(x) // numbers become float64 on the way
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &x); err != nil {
		t.Fatal(err)
	}
	return validator{t, root}.ok(root, x)
}

func TestSchemaAcceptsAndRefuses(t *testing.T) {
	schema := example().Schema()
	for _, tc := range []struct {
		name, yaml string
		want       bool
	}{
		{"empty", `{}`, true},
		{"plain",
			`stages: {a: {uses: dataset/list}, b: {uses: perturb/blur, in: {images: a}, with: {sigma: 3}}}`,
			true},
		{"reference", `stages: {b: {uses: perturb/blur, with: {sigma: "${axis.sigma}"}}}`, true},
		{"choice",
			`{axes: {m: {a: {uses: perturb/blur, with: {border: zero}}, b: {uses: dataset/list}}}, stages: ` +
				`{s: {uses: "${m}", matrix: [m], with: {anything: 1}}}}`, true},
		{"stack", `stages: {b: {uses: perturb/blur, in: {images: {metric: {x: a.images, y: b}}}}}`, true},
		{"lines",
			`stages: {b: {over: [m], only: [{m: a}, {m: [a, b]}], when: [{if: {m: a}, with: {sigma: 1}}], ` +
				`store: none, missing: drop}}`, true},
		{"seeds", `stages: {b: {seed: 4}, c: {seed: "${run}"}, d: {seed: "${run.seed}"}}`, true},
		{"some cells", `stages: {b: {uses: perturb/blur, in: {images: "a[run=1].images"}}}`, true},
		{"values", `axes: {m: {a: {path: x, size: 3}, b: 7, c: null}, n: [1, 2.5, x]}`, true},
		{"unknown top key", `stagse: {}`, false},
		{"unknown stage key", `stages: {a: {use: dataset/list}}`, false},
		{"unknown stage", `stages: {a: {uses: dataset/lits}}`, false},
		{"unknown parameter", `stages: {b: {uses: perturb/blur, with: {sigme: 3}}}`, false},
		{"unknown port", `stages: {b: {uses: perturb/blur, in: {image: a}}}`, false},
		{"out of range", `stages: {b: {uses: perturb/blur, with: {sigma: 21}}}`, false},
		{"wrong type", `stages: {b: {uses: perturb/blur, with: {passes: 1.5}}}`, false},
		{"wrong choice", `axes: {m: {a: {uses: perturb/blur, with: {border: mirrored}}}}`, false},
		{"bad id", `stages: {"a b": {uses: dataset/list}}`, false},
		{"bad store", `stages: {b: {store: always}}`, false},
		{"bad seed", `stages: {b: {seed: many}}`, false},
		{"negative seed", `stages: {b: {seed: -1}}`, false},
		{"half a condition", `stages: {b: {when: [{if: {m: a}}]}}`, false},
	} {
		if got := accepts(t, schema, tc.yaml); got != tc.want {
			t.Errorf("%s: accepted = %t, want %t: %s", tc.name, got, tc.want, tc.yaml)
		}
	}
}

func TestSchemaAcceptsExperiments(t *testing.T) {
	files, err := filepath.Glob("../experiments/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !accepts(t, Builtin().Schema(), string(b)) {
			t.Errorf("the schema refuses %s", file)
		}
	}
}

// The papers' tables use stages that come later, so only the language is looked at.
func TestSchemaKnowsTheLanguage(t *testing.T) {
	files, err := filepath.Glob("../pipeline/plan/testdata/papers/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no experiments in pipeline/plan/testdata/papers: %v", err)
	}
	var root node
	if err := json.Unmarshal(Builtin().Schema(), &root); err != nil {
		t.Fatal(err)
	}
	root["$defs"].(node)["uses"] = node{"type": "string"}
	delete(root["$defs"].(node)["stage"].(node), "allOf")
	schema, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !accepts(t, schema, string(b)) {
			t.Errorf("the schema refuses %s", file)
		}
	}
}
