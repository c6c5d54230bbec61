package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

// keepsFormats fails the test unless this build writes every JSON field, of the same type, every column and
// every file that the previous build's command writes: what docs/stability.md calls stable. An event says
// the time left only once the run has an estimate, which a fast run may end without.
func (w *world) keepsFormats(experiment, previous string) {
	w.Helper()
	narrow := []string{"--only", "method=constant,saliency", "--only", "model=vit"}
	var was, now map[string]bool
	for _, b := range []struct {
		program, dir string
		to           *map[string]bool
	}{{previous, "old", &was}, {"runexp", "new", &now}} {
		found := map[string]bool{}
		*b.to = found
		call := func(args ...string) string { return w.variation(b.program, 0, args...).stdout }
		store := []string{"--store", b.dir + "-store"}
		run := append([]string{"run", experiment, "--out", b.dir + "-folder", "--json"}, narrow...)
		const cell = "mas[method=saliency,model=vit]"
		get := append([]string{"get", experiment, cell, "-o", b.dir + "-got"}, narrow...)
		jsonFields("run", call(append(run, store...)...), found)
		call(append(get, store...)...)
		jsonFields("check", call("check", experiment, "--json"), found)
		jsonFields("inspect", call("inspect", "nets/vit.onnx", "--json"), found)
		for _, part := range []string{"folder/tables", "folder/items", "got"} {
			for name, text := range w.files(b.dir + "-" + part) {
				found["file "+part+"/"+name] = true
				if path.Ext(name) != ".csv" {
					continue
				}
				head, err := csv.NewReader(strings.NewReader(text)).Read()
				if err != nil {
					w.Fatalf("%s: %v", name, err)
				}
				if part == "folder/items" { // the others are items
					head = head[:1]
				}
				for _, column := range head {
					found["column "+column+" of "+part+"/"+name] = true
				}
			}
		}
	}
	if len(was) < 50 {
		w.Errorf("the previous build writes only %d things", len(was))
	}
	for thing := range was {
		if !now[thing] && !strings.HasSuffix(thing, ".left, float64") {
			w.Errorf("this build doesn't write %s", thing)
		}
	}
}

// jsonFields adds the fields of lines of JSON, or of one object of many lines, with their types. Those of
// events are apart for each.
func jsonFields(what, text string, to map[string]bool) {
	for d := json.NewDecoder(strings.NewReader(text)); d.More(); {
		var v any
		if err := d.Decode(&v); err != nil {
			to[fmt.Sprintf("JSON of %s: %v", what, err)] = true
			return
		}
		at := what
		if o, ok := v.(map[string]any); ok && o["event"] != nil {
			at = fmt.Sprint(at, " ", o["event"])
		}
		addFields(at, v, to)
	}
}

func addFields(at string, v any, to map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			addFields(at+"."+name, field, to)
		}
	case []any:
		for _, element := range v {
			addFields(at+"[]", element, to)
		}
	case nil:
	default:
		to[fmt.Sprintf("%s, %T", at, v)] = true
	}
}
