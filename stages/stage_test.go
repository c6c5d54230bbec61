package stages

import (
	"context"
	"errors"
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
	if err := s.Run(t.Context(), p, &Env{}); err != nil || got != 4 {
		t.Errorf("Run got %d, %v", got, err)
	}
	if n := s.HooksOf(s.NewParams()).Most(map[string]Amount{"images": {Items: 5}}); n != 15 {
		t.Errorf("Most returned %d, want 15", n)
	}
}

// A value and the port that it reads are given together or not at all; the hint names the one that is
// missing.
func TestGoesWith(t *testing.T) {
	for _, tc := range []struct {
		value     string
		wired     bool
		err, hint string
	}{
		{value: "pixel"},
		{value: "segment", wired: true},
		{"pixel", true, "unit is pixel, but the port segments is wired, which unit: segment alone reads",
			"write unit: segment"},
		{"segment", false, "unit is segment, but the port segments, which it reads, isn't wired",
			"wire segments"},
	} {
		err := GoesWith("unit", tc.value, "segment", "segments", tc.wired)
		if tc.err == "" {
			if err != nil {
				t.Errorf("%v: %v", tc, err)
			}
			continue
		}
		var f *FieldError
		if !errors.As(err, &f) || f.Field != "unit" || f.Error() != tc.err || f.Hint != tc.hint {
			t.Errorf("%v: got %#v", tc, err)
		}
	}
}
