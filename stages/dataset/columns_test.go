package dataset

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// withIDs returns items with ids and payloads.
func withIDs(facts stages.Facts, pairs ...any) stages.Data {
	var items stages.ItemSlice
	var payloads [][]byte
	for i := 0; i < len(pairs); i += 2 {
		id, b := pairs[i].(string), pairs[i+1].([]byte)
		items = append(items, stages.Item{ID: id, Origin: id, Digest: stages.Sum(b)})
		payloads = append(payloads, b)
	}
	return stages.Data{Facts: facts, Items: items,
		Load: func(i int) ([]byte, error) { return payloads[i], nil }}
}

func classPayload(class int64) []byte { return stages.NewTensor([]int64{class}, 1).Encode() }

func maskPayload(v ...uint8) []byte { return stages.NewTensor(v, 1, len(v)).Encode() }

func listFile(t testing.TB, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "labels.csv")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestColumns: every kind of column, with images that lack one.
func TestColumns(t *testing.T) {
	none := []byte{}
	in := map[string][]stages.Data{
		"images": {withIDs(nil, "a/1.png", none, "b/2.png", none, "3.png", none, "4.png", none)},
		"labels": {withIDs(stages.Facts{"labels": "cat\ndog"}, "a/1.png", classPayload(0), "b/2.png",
			classPayload(1), "4.png", classPayload(2))},
		"targets": {withIDs(nil, "a/1.png", classPayload(0), "b/2.png", classPayload(0), "3.png",
			classPayload(1))},
		"probability": {withIDs(nil, "a/1.png", stages.Scalar(0.5), "4.png", stages.Scalar(math.NaN()))},
		"masks": {withIDs(nil, "a/1.png", maskPayload(1, 0, 0, 255), "b/2.png", maskPayload(255, 255),
			"3.png", maskPayload(0, 0))},
	}
	list := listFile(t, "file,label,domain,blur\nb\\2.PNG.png,dog,x,1\n1.png,cat,indoor,0.25\n"+
		"2,dog,\"a,b\",nan\n3.png,cat, ,2\n")
	r := stagetest.Run(t, Columns, &ColumnsParams{List: list}, in)
	var got []string
	for _, b := range r.Payloads["columns"] {
		got = append(got, string(b))
	}
	want := []string{
		`{"blur":"0.25","class":"cat","domain":"indoor","predicted":"cat","prediction":"right",` +
			`"probability":"0.5","size":"0.3333333333333333"}`,
		`{"class":"dog","domain":"a,b","predicted":"cat","prediction":"wrong"}`,
		`{"blur":"2","predicted":"dog","size":"0"}`,
		`{"class":"2"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("class\npredicted\nprobability\nsize\nprediction\ndomain\nblur",
		r.Facts["columns"]["columns"]); diff != "" {
		t.Error(diff)
	}
	wantWarnings := []string{
		"1 of 4 images have no line in the list of columns, and no value in its columns; " +
			"1 of 4 lines of the list of columns are of no image",
	}
	if diff := cmp.Diff(wantWarnings, r.Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestColumnsRefused(t *testing.T) {
	none := []byte{}
	images := withIDs(nil, "a/1.png", none, "b/1.png", none, "c/2.png", none)
	masks := withIDs(nil, "c/2.png", maskPayload(1, 0))
	for text, want := range map[string]string{
		"":                                    "is empty",
		"image_url,domain\n1.png,x\n":         `labels.csv:1: no column "file"`,
		"file,domain,domain\n1.png,x,y\n":     `labels.csv:1: duplicate column "domain"`,
		"file,domain\na/1.png,x\n1.png,y\n":   `labels.csv:3: the file "1.png" may be "a/1.png" or "b/1.png"`,
		"file,domain\na/1.png,x\na/1.png,y\n": `labels.csv:3: "a/1.png" is also on line 2: its column`,
		"file,domain\na/1.png\n":              "labels.csv:2: 1 fields, the first line has 2",
		"file,size\n2.png,3\n":                `the column "size" is also made of what is wired`,
		"file,domain\n7.png,x\n":              "none of its 1 lines is of one of the 3 images",
		"file,domain\n":                       "lists no files",
		"file\n2.png\n":                       "no column besides files",
		"file,domain\n\"2.png\",\"x\ny\"\n":   "line break inside a field",
	} {
		_, err := stagetest.Try(Columns, &ColumnsParams{List: listFile(t, text)},
			map[string][]stages.Data{"images": {images}, "masks": {masks}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if err := Columns.Check(&ColumnsParams{}, func(string) bool { return false }); err == nil {
		t.Error("columns of nothing are accepted")
	}
}
