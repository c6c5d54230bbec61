package stages

import (
	"context"
	"reflect"
	"testing"
)

// TestNewLeavesNothingOut holds that a stage has every field of its declaration, functions included, and no
// function that the declaration lacks.
func TestNewLeavesNothingOut(t *testing.T) {
	type params struct{ By int }
	var full Def[params]
	d := reflect.ValueOf(&full).Elem()
	for i := range d.NumField() {
		fill(d.Field(i))
	}
	for _, tt := range []struct {
		name  string
		stage Stage
		has   func(name string) bool
	}{
		{"full", New(full), func(string) bool { return true }},
		{"empty", New(Def[params]{}), func(name string) bool {
			return name == "Tolerance" || name == "Defaults" || name == "Run"
		}},
	} {
		s := reflect.ValueOf(tt.stage.Def)
		for i := range s.NumField() {
			name := s.Type().Field(i).Name
			if has := !s.Field(i).IsZero(); has != tt.has(name) {
				t.Errorf("the %s declaration's stage has %s: %v", tt.name, name, has)
			}
		}
	}
}

// fill sets a field to something.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.String:
		v.SetString("x")
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Struct:
		fill(v.Field(0))
	case reflect.Func:
		v.Set(reflect.MakeFunc(v.Type(), nil))
	}
}

// TestParamsReachTheStage holds that a stage's functions get what a pointer to parameters points to, and that
// its default parameters are a copy.
func TestParamsReachTheStage(t *testing.T) {
	type params struct{ By int }
	got := 0
	s := New(Def[params]{
		Defaults: params{3},
		Run:      func(_ context.Context, p params, _ *Env) error { got = p.By; return nil },
		Hooks: func(p params) Hooks {
			return Hooks{Most: func(in map[string]Amount) int { return p.By * in["images"].Items }}
		},
	})
	p := s.NewParams().(*params)
	p.By++
	if err := s.Run(t.Context(), p, nil); err != nil || got != 4 {
		t.Errorf("Run got %d, %v", got, err)
	}
	if n := s.HooksOf(s.NewParams()).Most(map[string]Amount{"images": {Items: 5}}); n != 15 {
		t.Errorf("Most returned %d, want 15", n)
	}
}
