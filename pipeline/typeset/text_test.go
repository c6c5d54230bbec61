package typeset

import (
	"strings"
	"testing"
)

func TestInline(t *testing.T) {
	for text, want := range map[string]string{
		"auc[method=ig,model=vgg-bn]":       "auc[method=ig,model=vgg-bn]",
		"Which method explains small nets?": "Which method explains small nets?",
		"a_b, 3 × 4: é":                     "a_b, 3 × 4: é",
		"[click](https://evil.example)":     `[click\](https\://evil.example)`,
		"![](http://evil.example/x.png)":    `![\](http\://evil.example/x.png)`,
		"[click][ref]":                      `[click\][ref]`,
		"[ref]: www.evil.example":           `[ref\]: www\.evil.example`,
		"<img src=x> `code` a|b":            "&lt;img src=x> \\`code\\` a\\|b",
		`\[x](y)`:                           `\\[x\](y)`,
		"mail@evil.example":                 `mail\@evil.example`,
		"one\r\ntwo\nthree":                 "one two three",
		"a\x1b[2Jb\u202ec\xff":              `a\\x1b[2Jb\\u202ec\\xff`,
	} {
		if got := Inline(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	if got := Code("a`b\x1b"); got != "`a'b\\x1b`" {
		t.Errorf("code is %s", got)
	}
	if got := Target("figures/x](http~e)_a=1,b.svg"); strings.ContainsAny(got, "]()") {
		t.Errorf("a link to %s", got)
	}
}

func TestField(t *testing.T) {
	seen := map[string]string{}
	for text, want := range map[string]string{
		"cats/1.jpg": "cats/1.jpg", "": "", "-0.5": "-0.5", "+1e-3": "+1e-3", "a=b": "a=b",
		"=cmd()": "'=cmd()", "@x": "'@x", "-x": "'-x", "+x": "'+x", "-1+2": "'-1+2", "'=cmd()": "''=cmd()",
		"＝x":   "'＝x",
		"\t=x": `\x09=x`, `\x09=x`: `\\x09=x`, "a\x1b[2Jb": `a\x1b[2Jb`, "a\u202eb": `a\u202eb`,
		"a\xffb": `a\xffb`, "a\u200db": "a\u200db",
	} {
		got := Field(text)
		if got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
		if other, twice := seen[got]; twice {
			t.Errorf("%q and %q are both %q", text, other, got)
		}
		seen[got] = text
	}
}
