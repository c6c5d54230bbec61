package modelfile

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
)

func example() Model {
	return Model{
		Spec: Spec{
			Input: "x", Output: "y", Height: 2, Width: 1, Channels: 3, Classes: 5, Layout: NCHW, Order: RGB,
			Scale: 255, Mean: []float64{1, 2, 3}, Std: []float64{1, 2, 4},
		},
		ONNX: []byte("onnx"),
	}
}

func TestRoundTrip(t *testing.T) {
	b, err := example().Encode()
	if err != nil {
		t.Fatal(err)
	}
	m, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(example(), m); d != "" {
		t.Error(d)
	}
}

func TestDecodeRefuses(t *testing.T) {
	good, _ := example().Encode()
	bad := func(f func(*Spec)) []byte {
		m := example()
		f(&m.Spec)
		b, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	tests := []struct {
		name string
		in   []byte
		want string
	}{
		{"nothing", nil, "not a model"},
		{"another file", []byte("PK"), "not a model"},
		{"cut off", good[:30], "cut off"},
		{"no classes", bad(func(s *Spec) { s.Classes = 0 }), "0 classes"},
		{"classes and outputs", bad(func(s *Spec) { s.Outputs = []Output{{"z", []int{3}}} }), "5 classes"},
		{"an empty output", bad(func(s *Spec) {
			s.Output, s.Classes, s.Outputs = "", 0, []Output{{"z", []int{3, 0}}}
		}), "z [3 0]"},
		{"two channels", bad(func(s *Spec) { s.Channels = 2 }), "2 channels"},
		{"a mean missing", bad(func(s *Spec) { s.Mean = s.Mean[:1] }), "1 means"},
	}
	for _, tt := range tests {
		_, err := Decode(tt.in)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
}

// TestNormalise holds bytes and floats of the same picture against the formula in double precision.
func TestNormalise(t *testing.T) {
	s := example().Spec
	bytes := []uint8{0, 255, 10, 20, 30, 128}
	floats := make([]float32, len(bytes))
	for i, v := range bytes {
		floats[i] = float32(v) / 255
	}
	var got [2][]float32
	for k, image := range []stages.Tensor{stages.NewTensor(bytes, 3, 2, 1),
		stages.NewTensor(floats, 3, 2, 1)} {
		got[k] = make([]float32, 6)
		if err := s.Normalise(image, got[k]); err != nil {
			t.Fatal(err)
		}
		for i, v := range bytes {
			want := (float64(v) - s.Mean[i/2]) / s.Std[i/2]
			if !(math.Abs(float64(got[k][i])-want) <= 1e-4) {
				t.Errorf("value %d is %v, want %v", i, got[k][i], want)
			}
		}
	}
	if d := cmp.Diff(got[0], got[1]); d != "" {
		t.Errorf("bytes and floats differ: %s", d)
	}
	if b := s.Black(1); b != -1 {
		t.Errorf("black is %v, want -1", b)
	}
}

func TestNormaliseGrey(t *testing.T) {
	s := Spec{Height: 1, Width: 2, Channels: 1, Scale: 1, Mean: []float64{0}, Std: []float64{1}}
	got := make([]float32, 2)
	if err := s.Normalise(stages.NewTensor([]uint8{255, 51, 255, 0, 255, 0}, 3, 1, 2), got); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{1, 0.299 * 0.2} {
		if !(math.Abs(float64(got[i])-want) <= 1e-6) {
			t.Errorf("pixel %d is %v, want %v", i, got[i], want)
		}
	}
}

func TestNormaliseRefuses(t *testing.T) {
	s := example().Spec
	for _, image := range []stages.Tensor{
		stages.NewTensor(make([]uint8, 2), 1, 2, 1),
		stages.NewTensor(make([]uint8, 12), 3, 2, 2),
		stages.NewTensor(make([]float64, 6), 3, 2, 1),
	} {
		if err := s.Normalise(image, make([]float32, 12)); err == nil {
			t.Errorf("an image of type %s and shape %v was taken", image.DType, image.Shape)
		}
	}
}

func TestPresets(t *testing.T) {
	last := ""
	for _, p := range Presets() {
		if p.Name <= last {
			t.Errorf("preset %q is out of order", p.Name)
		}
		last = p.Name
		if q, ok := PresetNamed(p.Name); !ok || len(p.Mean) != 3 || len(p.Std) != 3 || q.Scale == 0 {
			t.Errorf("preset %q is incomplete", p.Name)
		}
	}
	if _, ok := PresetNamed("none"); ok {
		t.Error("an unknown preset was found")
	}
}

func FuzzDecode(f *testing.F) {
	b, _ := example().Encode()
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := Decode(b); err == nil {
			if _, err := m.Encode(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
