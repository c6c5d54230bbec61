package annotation

import (
	"reflect"
	"strings"
	"testing"
)

const someVOC = `<annotation>
	<folder>VOC2012</folder>
	<size><width>500</width><height>375</height><depth>3</depth></size>
	<object>
		<name>person</name><difficult>0</difficult>
		<bndbox><xmin>3</xmin><ymin>10</ymin><xmax>5</xmax><ymax>20.5</ymax></bndbox>
		<part><name>head</name><bndbox><xmin>4</xmin><ymin>5</ymin><xmax>6</xmax><ymax>7</ymax></bndbox></part>
	</object>
	<object>
		<bndbox><ymax>2</ymax><xmax>2</xmax><ymin>1</ymin><xmin>1</xmin></bndbox>
		<difficult>1</difficult><name>dog</name>
	</object>
</annotation>`

func TestVOC(t *testing.T) {
	got, _, err := ParseVOC([]byte(someVOC))
	if err != nil {
		t.Fatal(err)
	}
	want := &VOC{500, 375, []Object{
		{"person", false, Box{2, 9, 5, 20.5}},
		{"dog", true, Box{0, 0, 2, 2}},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// hostileVOC are annotations that must be errors, by a part of the error.
var hostileVOC = map[string]string{
	"":                       "an image of 0×0 pixels",
	"<annotation>\n<object>": "unexpected EOF",
	"<a>\n<b></a>":           "element <b> closed by </a>",
	"<annotation><size><width>x</width></size></annotation>": `parsing "x"`,

	"<annotation><size><width>99999</width><height>99999</height></size></annotation>": "99999×99999",

	"<annotation><object></object></annotation>":                 "an object without a name",
	"<annotation><object><name>cat</name></object></annotation>": `an edge of a cat's box is ""`,
	"<annotation>" + boxed("NaN", "1") + "</annotation>":         "a box with an edge at NaN",
	"<annotation>" + boxed("9", "1") + "</annotation>":           "has no inside",
	"<annotation>" + strings.Repeat(boxed("1", "1"), 5000):       "more than 4096 objects",
	strings.Repeat("<a>", 100000):                                "more than 32 elements in one another",

	`<!DOCTYPE a [<!ENTITY b "lol"><!ENTITY c "&b;&b;&b;">]><annotation>&c;</annotation>`: "invalid " +
		"character entity",
}

// boxed returns an object from xmin to xmax.
func boxed(xmin, xmax string) string {
	return "<object><name>a</name><bndbox><xmin>" + xmin + "</xmin><ymin>1</ymin><xmax>" + xmax +
		"</xmax><ymax>1</ymax></bndbox></object>"
}

func TestHostileVOC(t *testing.T) {
	for text, part := range hostileVOC {
		if _, _, err := ParseVOC([]byte(text)); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%.60s: error %v, want one with %q", text, err, part)
		}
	}
	_, line, err := ParseVOC([]byte("<annotation>\n<size>\n<width>x</width></size></annotation>"))
	if err == nil || line != 3 {
		t.Errorf("line %d: %v, want line 3", line, err)
	}
}

// FuzzVOC looks for annotations that panic.
func FuzzVOC(f *testing.F) {
	f.Add([]byte(someVOC))
	for text := range hostileVOC {
		f.Add([]byte(text[:min(len(text), 1000)]))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, _, err := ParseVOC(b)
		if err == nil && (v.W < 1 || v.H < 1) {
			t.Errorf("%+v", v)
		}
	})
}
