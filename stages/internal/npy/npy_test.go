package npy

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
)

// file builds an .npy file by hand, independently of the writer.
func file(descr string, fortran bool, shape string, raw []byte) []byte {
	order := "False"
	if fortran {
		order = "True"
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n", descr, order, shape)
	b := []byte("\x93NUMPY\x01\x00")
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	return append(append(b, text...), raw...)
}

// encode returns a tensor as an .npy file.
func encode(t stages.Tensor) []byte { return append(stages.NPYHeader(t.DType, t.Shape...), t.Raw...) }

func TestDecodeEveryType(t *testing.T) {
	tests := []struct {
		descr string
		raw   []byte
		want  []float64
	}{
		{"|b1", []byte{1, 0}, []float64{1, 0}},
		{"|u1", []byte{255, 2}, []float64{255, 2}},
		{"|i1", []byte{255, 2}, []float64{-1, 2}},
		{"<u2", []byte{1, 2, 255, 255}, []float64{513, 65535}},
		{"<i2", []byte{1, 2, 255, 255}, []float64{513, -1}},
		{">i2", []byte{2, 1, 255, 254}, []float64{513, -2}},
		{"<i4", []byte{1, 0, 0, 0, 255, 255, 255, 255}, []float64{1, -1}},
		{"<u4", []byte{1, 0, 0, 0, 255, 255, 255, 255}, []float64{1, 4294967295}},
		{">i8", []byte{0, 0, 0, 0, 0, 0, 1, 0}, []float64{256}},
		{"<u8", []byte{7, 0, 0, 0, 0, 0, 0, 0}, []float64{7}},
		{"<f2", []byte{0, 0x3c, 0, 0xc1, 1, 0, 0, 0x7c}, []float64{1, -2.5, math.Ldexp(1, -24), math.Inf(1)}},
		{"<f4", []byte{0, 0, 0xc0, 0x3f}, []float64{1.5}},
		{">f8", []byte{0xbf, 0xf0, 0, 0, 0, 0, 0, 0}, []float64{-1}},
	}
	for _, tt := range tests {
		a, err := Decode(file(tt.descr, false, fmt.Sprintf("(%d,)", len(tt.want)), tt.raw))
		if err != nil {
			t.Errorf("%s: %v", tt.descr, err)
			continue
		}
		if d := cmp.Diff(tt.want, a.Float64s()); d != "" {
			t.Errorf("%s: %s", tt.descr, d)
		}
		tensor, err := a.Tensor()
		if tt.descr == "<u8" {
			if err == nil {
				t.Errorf("u8 became a tensor, though i64 can't hold all its values")
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.descr, err)
		} else if d := cmp.Diff(tt.want, tensor.Float64s()); d != "" {
			t.Errorf("%s as tensor: %s", tt.descr, d)
		}
	}
}

func TestDecodeFortranOrder(t *testing.T) {
	a, err := Decode(file("|u1", true, "(2, 3)", []byte{0, 10, 1, 11, 2, 12}))
	if err != nil {
		t.Fatal(err)
	}
	if want := []int64{0, 1, 2, 10, 11, 12}; !cmp.Equal(want, a.Int64s()) {
		t.Errorf("got %v, want %v", a.Int64s(), want)
	}
}

func TestDecodeTexts(t *testing.T) {
	var raw []byte
	for _, r := range "aé\x00b\x00\x00" {
		raw = binary.BigEndian.AppendUint32(raw, uint32(r))
	}
	a, err := Decode(file(">U3", false, "(2,)", raw))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"aé", "b"}; !cmp.Equal(want, a.Strings()) {
		t.Errorf("got %q, want %q", a.Strings(), want)
	}
	if a.Float64s() != nil {
		t.Error("texts became numbers")
	}
}

func TestDecodeRefuses(t *testing.T) {
	tests := []struct {
		name string
		in   []byte
		want string
	}{
		{"nothing", nil, "not a .npy array"},
		{"text", []byte("hello, world"), "not a .npy array"},
		{"short", []byte("\x93NUMPY\x01\x00\xff\x00{"), "cut off"},
		{"huge header", []byte("\x93NUMPY\x02\x00\xff\xff\xff\xff{"), "claims"},
		{"objects", file("|O", false, "(1,)", []byte{0}), "not supported"},
		{"truncated", file("<f8", false, "(1000000,)", make([]byte, 8)), "8 of 8000000 bytes"},
		{"overflow", file("<f8", false, "(4294967296, 4294967296)", nil), "too large"},
		{"overflow next to zero", file("<f8", false, "(0, 4294967296, 4294967296)", nil), "too large"},
		{"negative", file("<f8", false, "(-1,)", nil), "malformed"},
		{"trailing", file("|u1", false, "(1,)", []byte{1, 2, 3}), "2 bytes follow"},
		{"structured", file("|V16", false, "(1,)", make([]byte, 16)), "not supported"},
	}
	for _, tt := range tests {
		_, err := Decode(tt.in)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
}

func TestEncodeRoundTrip(t *testing.T) {
	for _, tensor := range []stages.Tensor{
		stages.NewTensor([]float32{1, -2, 3, 4, 5, 6}, 1, 2, 3),
		stages.NewTensor([]uint8{}, 0, 3),
		stages.NewTensor([]int64{-7}, 1),
		stages.NewTensor([]uint32{1, 2}, 2),
		stages.NewTensor([]float64{math.Pi}),
	} {
		b := encode(tensor)
		if start := len(b) - len(tensor.Raw); start%64 != 0 {
			t.Errorf("%v: elements start at byte %d", tensor.Shape, start)
		}
		a, err := Decode(b)
		if err != nil {
			t.Fatalf("%v: %v", tensor.Shape, err)
		}
		got, err := a.Tensor()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Encode(), tensor.Encode()) {
			t.Errorf("got %v, want %v", got, tensor)
		}
	}
}

func TestArchive(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range []string{"x.npy", "dir/y.npy", "note.txt"} {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		w.Write(file("|u1", false, "(3,)", []byte{1, 2, 3}))
	}
	z.Close()
	arrays, err := readAll(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if len(arrays) != 2 || arrays["x"].Len() != 3 || arrays["dir/y"].Len() != 3 {
		t.Errorf("got %v", arrays)
	}
	damaged := bytes.Clone(b.Bytes())
	i := bytes.Index(damaged, []byte("NUMPY"))
	damaged[i] ^= 1
	if _, err := readAll(damaged); err == nil {
		t.Error("a damaged archive was read")
	}
}

// readAll reads all arrays of an archive, or the array of an .npy file.
func readAll(b []byte) (map[string]Array, error) {
	if !bytes.HasPrefix(b, []byte("PK")) {
		a, err := Decode(b)
		return map[string]Array{"": a}, err
	}
	z, err := newArchive(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	arrays := map[string]Array{}
	for _, name := range z.Names() {
		if arrays[name], err = z.Read(name); err != nil {
			return nil, err
		}
	}
	return arrays, nil
}

func FuzzRead(f *testing.F) {
	f.Add(file("<f8", false, "(2, 1)", make([]byte, 16)))
	f.Add(file(">U2", true, "(2, 2)", make([]byte, 32)))
	f.Add(encode(stages.NewTensor([]float32{1, 2}, 2)))
	f.Fuzz(func(t *testing.T, b []byte) {
		arrays, err := readAll(b)
		if err != nil {
			return
		}
		for name, a := range arrays {
			if len(a.Raw) != a.Len()*sizes(a.DType) {
				t.Fatalf("%q of shape %v holds %d bytes", name, a.Shape, len(a.Raw))
			}
			a.Float64s()
			a.Strings()
			if tensor, err := a.Tensor(); err == nil {
				if _, err := Decode(encode(tensor)); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
