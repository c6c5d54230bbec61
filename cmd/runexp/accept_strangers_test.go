package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// coloursOf returns the colours of classes in [0,1], far from one another.
func coloursOf(classes int) (all [][3]float64) {
	levels := []float64{0.1, 0.5, 0.9}
	for i := range classes {
		all = append(all, [3]float64{levels[i%3], levels[i/3%3], levels[(i/9+i)%3]})
	}
	return all
}

// nearestColour returns an ONNX file whose logit of a class is the larger the nearer an image's mean colour
// is to the class's, for pixels in −1 … 1 (preset half).
func nearestColour(classes int) []byte {
	var w, c []float32
	for _, colour := range coloursOf(classes) {
		square := 0.0
		for _, v := range colour {
			x := 2*v - 1
			w, square = append(w, float32(24*x)), square+x*x
		}
		c = append(c, float32(-12*square))
	}
	graph := []field{
		onnxNode("GlobalAveragePool", []string{"x"}, "m"), onnxNode("Flatten", []string{"m"}, "f"),
		onnxNode("Gemm", []string{"f", "w", "c"}, "y",
			message(field{1, "transB"}, field{20, 2}, field{3, 1})),
		{2, "colours"}, onnxWeight("w", w, classes, 3), onnxWeight("c", c, classes),
		{11, onnxValue("x", 0, 3, 16, 16)}, {12, onnxValue("y", 0, classes)},
	}
	return message(field{1, 8}, field{7, message(graph...)}, field{8, message(field{2, 13})})
}

// photoOf draws a noisy photograph of a colour.
func photoOf(colour [3]float64, r *rand.Rand) image.Image {
	m := image.NewNRGBA(image.Rect(0, 0, 16, 16))
	for p := range 16 * 16 {
		var v [3]uint8
		for c := range v {
			v[c] = uint8(255 * min(max(colour[c]+0.1*(r.Float64()-0.5), 0), 1))
		}
		m.Set(p%16, p/16, color.NRGBA{v[0], v[1], v[2], 255})
	}
	return m
}

// TestStrangersFolders has new read the same photographs, of a net that knows colours, in the forms in which
// people have them. Names of files tell nothing, and their order is random.
func TestStrangersFolders(t *testing.T) {
	runtimeOrSkip(t)
	asPNG := func(m image.Image) []byte {
		var b bytes.Buffer
		if err := png.Encode(&b, m); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	asJPEG := func(m image.Image) []byte {
		var b bytes.Buffer
		if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 100}); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 12345\n"
	for _, tt := range []struct {
		name    string
		classes int
		per     int    // photographs of a class, 3 by default
		file    string // the path of a photograph in photos: {n} is its class, {n1} that from 1, {a} a letter
		list    string // what labels.csv says of a photograph, if there is one
		form    func(m image.Image) []byte
		archive bool
		names   string // labels.txt next to the net
		other   string // a file that is no photograph
		images  string // what new is given; photos by default

		want, yaml string // in what new prints, and in what it writes
		code       int
	}{
		{name: "numbers as folders", classes: 12, file: "{n}/{name}.png", yaml: "order: number",
			want: "classes by the numbers in their names: the model is right on 36 of 36"},
		{name: "numbers behind words, from 1", classes: 12, file: "class {n1}/{name}.png",
			want: "the model is right on 36 of 36", yaml: "order: number"},
		{name: "words", classes: 12, file: "{a}-thing/{name}.png",
			want: "classes in the order of text: the model is right on 36 of 36"},
		{name: "two classes", classes: 2, per: 8, file: "{a}/{name}.png",
			want: "the model is right on 16 of 16"},
		{name: "splits", classes: 12, file: "{split}/{a}/{name}.png", code: 2,
			want: "photos holds 2 folders (train, val) of 12 class folders each and the model has 12"},
		{name: "a split", classes: 12, file: "val/{a}/{name}.png", images: "photos/val",
			want: "the model is right on 36 of 36"},
		{name: "jfif", classes: 12, file: "{a}/{name}.jfif", form: asJPEG,
			want: "the model is right on 36 of 36"},
		{name: "an archive", classes: 12, file: "{a}/{name}.png", archive: true, images: "photos.zip",
			want: "the model is right on 36 of 36"},
		{name: "labels as floats", classes: 12, file: "{name}.png", list: "{n}.0",
			want: "classes as they are numbered: the model is right on 36 of 36"},
		{name: "labels from 1", classes: 12, file: "{name}.png", list: "{n1}", yaml: "first: 1",
			want: "classes as they are numbered, from 1: the model is right on 36 of 36"},
		{name: "labels from 1, the last class without one", classes: 13, file: "{name}.png", list: "{n1}",
			want: "classes as they are numbered, from 1: the model is right on 36 of 36", yaml: "first: 1"},
		{name: "a missing label", classes: 3, file: "{name}.png", list: "{nan}", code: 3,
			want: `the label is missing: "nan"`},
		{name: "names with numbers", classes: 3, file: "Class {a}/{name}.png", yaml: "names: ",
			names: "0 Class a\n1 Class b\n2 Class c\n", want: "the model is right on 9 of 9"},
		{name: "another format", classes: 12, file: "{a}/{name}.png", other: "photos/d/drawing.svg",
			want: `1 of 37 pictures in "photos": 1 SVG`},
		{name: "pointers", classes: 3, file: "{a}/{name}.png", want: "a pointer of Git LFS",
			form: func(image.Image) []byte { return fmt.Appendf(nil, pointer, 7) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(27, uint64(tt.classes)))
			w := newWorld(t, nil)
			net := fmt.Sprintf("n%d.onnx", r.IntN(1000))
			w.write(net, nearestColour(tt.classes))
			if tt.names != "" {
				w.write("labels.txt", []byte(tt.names))
			}
			if tt.form == nil {
				tt.form = asPNG
			}
			var lines []string
			var b bytes.Buffer
			z := zip.NewWriter(&b)
			for class, colour := range coloursOf(min(tt.classes, 12)) {
				for k := range max(tt.per, 3) {
					say := strings.NewReplacer("{n}", fmt.Sprint(class), "{n1}", fmt.Sprint(class+1),
						"{a}", string(rune('a'+class)), "{split}", []string{"train", "val"}[k%2],
						"{nan}", []string{"nan", "1.0"}[min(class, 1)],
						"{name}", fmt.Sprintf("%05x%d", r.IntN(1<<20), k))
					file := say.Replace(tt.file)
					if tt.list != "" {
						lines = slices.Insert(lines, r.IntN(len(lines)+1), file+","+say.Replace(tt.list))
					}
					content := tt.form(photoOf(colour, r))
					if !tt.archive {
						w.write("photos/"+file, content)
						continue
					}
					f, err := z.Create(file)
					if err == nil {
						_, err = f.Write(content)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			if tt.archive {
				if err := z.Close(); err != nil {
					t.Fatal(err)
				}
				w.write("photos.zip", b.Bytes())
			}
			if tt.list != "" {
				w.write("photos/labels.csv", []byte("file,label\n"+strings.Join(lines, "\n")+"\n"))
			}
			if tt.other != "" {
				w.write(tt.other, []byte("<svg xmlns='http://www.w3.org/2000/svg'/>"))
			}
			if tt.images == "" {
				tt.images = "photos"
			}
			e := w.run(tt.code, "new", "out", "--model", net, "--images", tt.images)
			if said := e.stdout + e.stderr; !strings.Contains(said, tt.want) {
				t.Errorf("new doesn't say %q:\n%s", tt.want, said)
			}
			if tt.yaml != "" {
				text := w.read("out/" + strings.TrimSuffix(net, ".onnx") + ".yaml")
				if !strings.Contains(text, tt.yaml) {
					t.Errorf("the experiment doesn't say %q:\n%s", tt.yaml, text)
				}
			}
		})
	}
}
