package textfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t testing.TB, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "texts")
	if err := os.WriteFile(file, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestSingleRecords: every record is read from its place as it was when the file was indexed, whatever is
// between records.
func TestSingleRecords(t *testing.T) {
	for name, content := range map[string]string{
		"CSV":        "text,label,id\n\na,x,1\n\"b\n\"\"c\"\"\",\"y\",2\n\n\nd,x,3",
		"semicolons": "\ufefftext;label;id\r\na;x;1\r\n\"b\r\n\"\"c\"\"\";y;2\r\nd;x;3\r\n",
		"JSON": `{"text": "a", "label": "x", "id": 1}` + "\r\n\n" +
			`{"text": "b\n\"c\"", "label": "y", "id": "2"}` +
			"\n  " + `{"text": "d", "label": "x", "id": 3}`,
	} {
		t.Run(name, func(t *testing.T) {
			x, err := Open(write(t, content), Usual, false)
			if err != nil {
				t.Fatal(err)
			}
			r, err := x.Reader()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			var got []string
			for i := len(x.Entries) - 1; i >= 0; i-- {
				record, d, err := r.Read(x.Entries[i].ID)
				if err != nil || d != x.Entries[i].Digest {
					t.Fatal(err)
				}
				got = append(got, record.ID, record.Text, x.Entries[i].Label)
			}
			if want := []string{"3", "d", "x", "2", "b\n\"c\"", "y", "1", "a", "x"}; !slices.Equal(got,
				want) {
				t.Errorf("%q, want %q", got, want)
			}
			if len(x.Labels) != 2 || x.Labels[1].Label != "y" {
				t.Errorf("%v", x.Labels)
			}
			if _, _, err := r.Read("4"); err == nil {
				t.Error("a record that isn't there was read")
			}
		})
	}
}

// TestQuoteThatIsntClosed: the rest of a file isn't read for one record.
func TestQuoteThatIsntClosed(t *testing.T) {
	b := &budget{strings.NewReader(strings.Repeat("x", 1<<20)), 1 << 10}
	n, err := io.Copy(io.Discard, b)
	if err == nil || errors.Is(err, io.EOF) || n > 1<<16 || !strings.Contains(err.Error(), "quote") {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// FuzzOpen: whatever a file has, each record of its index is read again and has offsets inside its text.
func FuzzOpen(f *testing.F) {
	for _, s := range []string{"text,label\na,b\n\"c\nd\",e", "text\tid\r\n\"a\"\"b\"\t1\r\n",
		`{"text": "a"}`, "{}",
		`{"pad": 0}` + "\n" +
			`{"text": "ab", "ids": [1, 2], "tokens": ["a", "b"], "offsets": [[0, 1], [1, 2]],` +
			` "special": [0, 1], "mask": [1, 1], "types": [0, 0], "rationale": [[0, 1]]}`,
		"\ufeff\n{\"text\": \"é\", \"rationale\": []}\r\n\r\n{\"text\": 1}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		file := write(t, string(content))
		for _, tokens := range []bool{false, true} {
			x, err := Open(file, Usual, tokens)
			if err != nil {
				continue
			}
			r, err := x.Reader()
			if err != nil {
				t.Fatal(err)
			}
			for i := range x.Entries {
				record, d, err := r.Read(x.Entries[i].ID)
				if err != nil || d != x.Entries[i].Digest {
					t.Errorf("%q: %v", x.Entries[i].ID, err)
					continue
				}
				n := len([]rune(record.Text))
				if record.Tokens == nil {
					continue
				}
				k := record.Tokens
				if len(k.IDs) != len(k.Texts) || len(k.IDs) != len(k.Offsets) ||
					len(k.IDs) != len(k.Special) {
					t.Errorf("%+v", k)
				}
				for _, o := range k.Offsets {
					if o[0] < 0 || o[0] > o[1] || o[1] > n {
						t.Errorf("%v of %d", o, n)
					}
				}
			}
			r.Close()
		}
	})
}
