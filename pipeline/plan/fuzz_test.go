package plan

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// aliasBomb doubles a list again and again: 2²⁶ values in a few lines.
func aliasBomb() string {
	var b strings.Builder
	b.WriteString("name: x\nl0: &l0 [a, b]\n")
	for i := range 25 {
		n := string(rune('A' + i))
		before := "l0"
		if i > 0 {
			before = string(rune('A' + i - 1))
		}
		b.WriteString(n + ": &" + n + " [*" + before + ", *" + before + "]\n")
	}
	return b.String()
}

// Hostile texts are refused by name, soon.
func TestHostileYAML(t *testing.T) {
	const soon = 20 * time.Second // a hang takes longer, a busy machine doesn't
	const valid = "name: x\nstages: {a: {uses: dataset/shapes}}\npublish: [a]\n"
	mb := 1 << 20
	for _, tc := range []struct{ name, text, want string }{
		{"empty", "", "the file is empty"},
		{"only comments", "# a\n# b\n", "the file is empty"},
		{"aliases", aliasBomb(), "aliases expand to more than 200000 values"},
		{"10 MB", "name: " + strings.Repeat("x", 10*mb), "the file has more than 1048576 bytes"},
		{"a large scalar", "name: x\ntitle: " + strings.Repeat("x", 100_000) + "\n",
			"a string of 100000 bytes"},
		{"a large key", "? " + strings.Repeat("x", 2000) + "\n: 1\n", "a key of"},
		{"many values", "name: [" + strings.Repeat("a,", mb/2-10) + "]\n",
			"the file holds more than 200000 values"},
		{"deep flow", "name: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
			"nested more than 40 deep"},
		{"deeper flow", strings.Repeat("{a: ", mb/4-10), "not YAML: exceeded max depth"},
		{"deep block", strings.Repeat("- ", 5000) + "x", "nested more than 40 deep"},
		{"NUL", "name: x\x00\n", "a NUL byte"},
		{"escape", "name: \x1b[31m\n", "the control character U+001B"},
		{"line separator", "name: a\u2028b\n", "the control character U+2028"},
		{"latin 1", "title: caf\xe9\n", "the text isn't UTF-8"},
		{"UTF-16", "\xff\xfen\x00a\x00", "the file is UTF-16 text"},
		{"binary", "name: !!binary aGVsbG8=\n", "the tag !!binary isn't plain data"},
		{"custom tag", "name: !x y\n", "the tag !x isn't plain data"},
		{"merge key", "name: x\n<<: {a: b}\n", "merge keys (<<) aren't plain data"},
		{"a quoted merge key", strings.Replace(valid, "publish", "\"<<\": {}\npublish", 1),
			`unknown key "<<" of an experiment`},
		{"recursive alias", "name: &a [*a]\n", "the alias *a contains itself"},
		{"recursive alias of a map", "name: &a {b: *a}\n", "the alias *a contains itself"},
		{"unknown alias", "name: *a\n", "unknown anchor 'a' referenced"},
		{"alias as key", "name: &a x\n*a : b\n", "a key that isn't a plain string"},
		{"NaN", strings.Replace(valid, "shapes", "shapes, with: {size: .nan}", 1),
			".nan is not a whole number"},
		{"infinity", strings.Replace(valid, "shapes", "shapes, with: {size: -.Inf}", 1),
			"-.Inf is not a whole number"},
		{"two documents", valid + "---\n" + valid, "a second document begins here"},
		{"an unfinished second document", valid + "---\n[", "not YAML"},
		{"CRLF", strings.ReplaceAll(valid, "\n", "\r\n"), ""},
		{"CR", strings.ReplaceAll(valid, "\n", "\r"), ""},
		{"byte order mark", "\ufeff" + valid, ""},
		{"an alias", "name: &x x\ntitle: *x\n" + strings.TrimPrefix(valid, "name: x\n"), ""},
		{"directive", "%YAML 1.1\n---\n" + valid, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			start := time.Now()
			_, err := Parse("x.yaml", []byte(tc.text), "", paperCatalog(), Overrides{})
			if took := time.Since(start); took > soon {
				t.Errorf("took %v", took)
			}
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("got %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %.2000v\nwant %s", err, tc.want)
			}
			if err != nil && len(err.Error()) > 5000 {
				t.Errorf("a message of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestLoadRefusesWhatIsNoFile(t *testing.T) {
	for _, name := range []string{"testdata", "testdata/none.yaml"} {
		var ds Diags
		if _, err := Load(name, paperCatalog(), Overrides{}); err == nil || errors.As(err, &ds) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// FuzzParse looks for texts that make the reader of experiments panic, hang, point outside the text, or
// forget something when it writes an experiment back.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for chunk := range strings.SplitSeq(string(data), "\n---\n") {
			f.Add([]byte(chunk))
		}
	}
	f.Add([]byte(base + "publish: [maps]\n"))
	c := paperCatalog()
	f.Fuzz(func(t *testing.T, data []byte) {
		l := newLoader(c, Overrides{})
		l.limit = 2000
		p, err := l.load(&sourceText{name: "x.yaml", dir: "testdata/papers", data: data})
		var ds Diags
		switch {
		case err == nil:
		case !errors.As(err, &ds) || len(ds) == 0:
			t.Fatalf("the error is %v", err)
		default:
			lines := strings.Count(string(data), "\n") + strings.Count(string(data), "\r") + 1
			for _, d := range ds {
				if d.Line > lines || d.Line < 1 && d.File == "x.yaml" {
					t.Fatalf("a diagnostic of line %d of %d: %v", d.Line, lines, d)
				}
			}
			_ = ds.Error()
			return
		}
		checkPlan(t, p)
		text := string(p.Resolved())
		q, err := Parse("resolved.yaml", []byte(text), "testdata/papers", c, Overrides{})
		if err != nil {
			t.Fatalf("%v\nin\n%s", err, text)
		}
		if got, want := q.graphText(), p.graphText(); got != want && !absolutePaths(p) {
			t.Fatalf("the resolved experiment\n%s\ngives\n%s\nwant\n%s", text, got, want)
		}
	})
}

// absolutePaths reports whether the plan reads absolute paths, of which the resolved experiment holds no more
// than the end.
func absolutePaths(p *Plan) bool {
	for path := range p.files {
		if filepath.IsAbs(path) {
			return true
		}
	}
	return false
}
