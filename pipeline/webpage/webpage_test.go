package webpage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/publish"
)

// hostile is a text that a browser would run if it were markup.
const hostile = `</script><script>alert(1)</script><img src=x onerror=alert(2)><!--`

// folder writes a review folder of a score on one axis and a table.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func line(cell string, mean float64) string {
	quoted, _ := json.Marshal(cell)
	const text = `{"cell":%s,"definition":"0123456789abcdef","direction":"higher","mean":%g,"n":2,"score":"scores",` +
		`"tolerance":0,"undefined":0}` + "\n"
	return fmt.Sprintf(text, quoted, mean)
}

// page returns the page of a folder, and its model.
func pageOf(t *testing.T, dir string) (string, model) {
	t.Helper()
	v, err := publish.ReadVersion(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, Source{Version: v, Missing: "no maps"}, nil); err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?s)id="model">(.*?)</script>`).FindStringSubmatch(b.String())
	var m model
	if found == nil {
		t.Fatal("the page has no model")
	}
	var loose map[string]json.RawMessage
	if err := json.Unmarshal([]byte(found[1]), &loose); err != nil {
		t.Fatal(err)
	}
	for name, text := range loose {
		if string(text) == "null" {
			t.Errorf("%s is null, which the page's script doesn't expect", name)
		}
	}
	for name, to := range map[string]any{"title": &m.Title, "answers": &m.Answers, "tables": &m.Tables,
		"command": &m.Command, "figures": &m.Figures, "left": &m.Left, "notes": &m.Notes} {
		if text, ok := loose[name]; ok {
			if err := json.Unmarshal(text, to); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	return b.String(), m
}

// TestHostile: texts with markup are data, broken pictures are named, links lead nowhere.
func TestHostile(t *testing.T) {
	quoted, _ := json.Marshal(hostile)
	title := string(quoted)
	dir := folder(t, map[string]string{
		"experiment.yaml": "name: x\ntitle: " + title + "\npublish: [board]\n",
		"folder.jsonl": `{"command":` + title + "}\n" + `{"note":` + title + "}\n" +
			`{"cell":"board","port":"answer","text":` + title + "}\n" +
			`{"directions":{"score":` + title + `},"table":"tables/board.csv","title":` + title + "}\n",
		"cells/s.jsonl": line("s[method="+hostile+"]", 1) + line("s[method=b]", 2),
		"items/s.csv": "cell/item,\"" + strings.ReplaceAll(hostile, `"`, `""`) + "\"\n" +
			"\"s[method=b]\",1\n",
		"tables/board.csv":  "method,score\n\"" + hostile + "\",1\n",
		"figures/board.png": "\x89PNG\r\n\x1a\n" + strings.Repeat("x", 100),
		"figures/board.svg": "<svg onload=\"alert(3)\"></svg>",
	})
	text, m := pageOf(t, dir)
	if n := strings.Count(text, "<script"); n != 2 {
		t.Errorf("the page has %d scripts, not the model and ours", n)
	}
	if strings.Contains(text, "<img") {
		t.Error("a text became an element")
	}
	if m.Title != hostile || len(m.Answers) != 1 || m.Answers[0].Text != hostile {
		t.Errorf("the texts aren't what the folder says: %q, %v", m.Title, m.Answers)
	}
	if len(m.Notes) != 1 || m.Notes[0] != hostile || m.Command != hostile {
		t.Errorf("the page's notes are %q, its command %q", m.Notes, m.Command)
	}
	if len(m.Tables) != 1 || m.Tables[0].Title != hostile {
		t.Errorf("the page's tables are %+v", m.Tables)
	}
	if len(m.Figures) != 0 || len(m.Left) != 2+1 {
		t.Errorf("%d figures of files that are none, %q left out", len(m.Figures), m.Left)
	}
}

// TestLinks: what a folder's links lead to isn't read.
func TestLinks(t *testing.T) {
	dir := folder(t, map[string]string{"cells/s.jsonl": line("s", 1)})
	secret := filepath.Join(t.TempDir(), "secret.csv")
	if err := os.WriteFile(secret, []byte("method,score\nsecret,1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "tables"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "tables", "s.csv")); err != nil {
		t.Skipf("no links here: %v", err)
	}
	if _, err := publish.ReadVersion(dir); err == nil {
		t.Error("a link in the place of a table is no error")
	}
}

// TestManyRows: a table of a million rows is cut, and the page says how many are left out.
func TestManyRows(t *testing.T) {
	var b strings.Builder
	b.WriteString("method,score\n")
	for i := range 1_000_000 {
		fmt.Fprintf(&b, "m%d,%d\n", i, i%7)
	}
	dir := folder(t, map[string]string{"cells/s.jsonl": line("s[method=a]", 1), "tables/s.csv": b.String()})
	text, m := pageOf(t, dir)
	if len(m.Tables) != 1 || m.Tables[0].Len != 1_000_000 || len(m.Tables[0].Rows) != mostRows {
		t.Errorf("the page doesn't have %d of a million rows", mostRows)
	}
	if len(text) > 5<<20 {
		t.Errorf("the page has %d bytes", len(text))
	}
}

// TestManyItems: the page names the scores whose items don't fit into it.
func TestManyItems(t *testing.T) {
	const items, cells = 250_000, 16
	row := func(first string, field func(i int) string) string {
		var b strings.Builder
		b.WriteString(first)
		for i := range items {
			b.WriteString("," + field(i))
		}
		return b.String() + "\n"
	}
	all := row("cell/item", func(i int) string { return fmt.Sprintf("i%06d", i) })
	values := row("", func(i int) string { return fmt.Sprint(i % 7) })
	lines := ""
	for i := range cells {
		cell := fmt.Sprintf("s[method=m%02d]", i)
		all, lines = all+cell+values, lines+line(cell, 3)
	}
	_, m := pageOf(t, folder(t, map[string]string{"cells/s.jsonl": lines, "items/s.csv": all}))
	want := fmt.Sprintf("Of %d scores,", cells-mostValues/items)
	if len(m.Left) != 2 || !strings.HasPrefix(m.Left[1], want) {
		t.Errorf("left out %q, not %q", m.Left, want)
	}
}

// TestPolicy: the page runs one script and loads nothing.
func TestPolicy(t *testing.T) {
	text, _ := pageOf(t, folder(t, map[string]string{"cells/s.jsonl": line("s", 1)}))
	script := regexp.MustCompile(`(?s)<script>(.*?)</script>`).FindStringSubmatch(text)
	style := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindStringSubmatch(text)
	for _, part := range []string{"default-src 'none'", "script-src 'sha256-" + digest(script[1]) + "'",
		"style-src 'sha256-" + digest(style[1]) + "'", "form-action 'none'", "base-uri 'none'"} {
		if !strings.Contains(text, part) {
			t.Errorf("the page's policy doesn't have %s", part)
		}
	}
	for _, word := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
		"new Function", "fetch(", "XMLHttpRequest", "WebSocket", "http://", "https://"} {
		if strings.Contains(strings.ReplaceAll(script[1], "http://www.w3.org/2000/svg", ""), word) {
			t.Errorf("the page's script has %s", word)
		}
	}
}

// TestMainTables: the main table of a stage comes first, whatever its port is called.
func TestMainTables(t *testing.T) {
	v, err := publish.ReadVersion("../../artifacts/curves")
	if err != nil {
		t.Fatal(err)
	}
	m, err := newModel(Source{Version: v}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, table := range m.Tables {
		files = append(files, strings.TrimPrefix(table.File, "tables/"))
	}
	const want = "leaderboard.csv leaderboard.details.csv others.leaderboard.csv others.details.csv " +
		"decay.points.csv"
	if got := strings.Join(files, " "); got != want {
		t.Errorf("the tables are %s, want %s", got, want)
	}
}
